variable "region" {
  type = string
}

variable "account" {
  type = string
}

variable "prefix" {
  type = string
}

variable "cluster_name" {
  type = string
}

variable "oidc" {
  type = object({
    provider_arn = string
    issuer       = string
  })
}

variable "repositories" {
  description = "Address of a repository by the name of its image."
  type        = map(string)
}

variable "contents_bucket" {
  type = string
}

variable "storage_class" {
  type = string
}

variable "vpc_cidr" {
  type = string
}

variable "image_tag" {
  type = string
}

variable "ghcr_username" {
  type = string
}

variable "ghcr_token" {
  type      = string
  sensitive = true
}

variable "admins" {
  type = list(string)
}

variable "allowed_role" {
  type = string
}

variable "domain" {
  type = string
}

variable "load_balancer_prefixes" {
  description = "Prefix lists that the load balancer admits; none: everybody."
  type        = list(string)
}
