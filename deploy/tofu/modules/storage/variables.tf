variable "prefix" {
  type = string
}

variable "account" {
  type = string
}

variable "vpc_id" {
  type = string
}

variable "subnets" {
  description = "Subnet by zone."
  type        = map(string)
}

variable "node_security_group" {
  type = string
}

variable "cluster_is_reachable" {
  type = bool
}
