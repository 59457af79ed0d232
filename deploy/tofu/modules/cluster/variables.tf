variable "name" {
  type = string
}

variable "prefix" {
  type = string
}

variable "subnet_ids" {
  type = list(string)
}

variable "node_security_group" {
  type = string
}

variable "allowed_node_role_arn" {
  description = "The role of nodes that we start ourselves, and that may join."
  type        = string
}

variable "kubernetes_version" {
  type    = string
  default = "1.34"
}
