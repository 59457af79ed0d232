variable "prefix" {
  type = string
}

variable "cluster_name" {
  type = string
}

variable "gpu_types" {
  description = "The types that get a placement group."
  type        = list(string)
}
