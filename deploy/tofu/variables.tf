variable "environment" {
  description = "Which environment this is: test (workspace default) or prod (workspace prod)."
  type        = string
  default     = "test"

  validation {
    condition     = contains(["test", "prod"], var.environment)
    error_message = "The environment is test or prod."
  }
}

variable "aws_region" {
  description = "Region of AWS."
  type        = string
  default     = "us-west-1"
}

variable "prefix" {
  description = "What the names of everything begin with."
  type        = string
  default     = "pytorch-gpu-dev"
}

variable "instance_type" {
  description = "Instance type of the GPU nodes where supported_gpu_types is not given."
  type        = string
  default     = "g4dn.12xlarge"
}

variable "gpu_instance_count" {
  description = "How many of them there are."
  type        = number
  default     = 2

  validation {
    condition     = var.gpu_instance_count >= 0 && floor(var.gpu_instance_count) == var.gpu_instance_count
    error_message = "The number of GPU nodes is a whole number."
  }
}

variable "supported_gpu_types" {
  description = <<-EOT
    The node groups of each GPU type of the catalogue, by suffix: an empty suffix is the group
    <prefix>-gpu-nodes-<type>, others are <prefix>-gpu-nodes-<type>-<suffix>, such as a reserved group beside one on
    demand. Null: gpu_instance_count nodes of the type that has instance_type.
  EOT
  type = map(map(object({
    size                    = number
    capacity_reservation_id = optional(string)
    availability_zone       = optional(string)
    managed                 = optional(bool, false)
    profiling               = optional(bool, false)
    system                  = optional(string, "al2023")
  })))
  default = null

  validation {
    condition     = alltrue([for name in keys(coalesce(var.supported_gpu_types, {})) : contains(keys(local.catalogue), name)])
    error_message = "GPU types are those of catalogue.tf.json."
  }
}

variable "ghcr_username" {
  description = "User for the cache of ghcr.io."
  type        = string
  default     = ""
}

variable "ghcr_token" {
  description = "Token of that user, with the right to read packages."
  type        = string
  default     = ""
  sensitive   = true
}

variable "dockerhub_username" {
  description = "User for ECR's cache of Docker Hub; empty: there is no such cache."
  type        = string
  default     = ""
}

variable "dockerhub_token" {
  description = "Access token of that user."
  type        = string
  default     = ""
  sensitive   = true
}

variable "grafana_admin_password" {
  description = "Password of Grafana's admin."
  type        = string
  sensitive   = true

  validation {
    condition     = length(var.grafana_admin_password) >= 12
    error_message = "The password of Grafana's admin has at least 12 characters."
  }
}

variable "allowed_role" {
  description = "The role of IAM, or the permission set of Identity Center, that lets people log in."
  type        = string
  default     = "SSOCloudDevGpuReservation"
}

variable "admins" {
  description = "Usernames of gpu-dev's admins."
  type        = list(string)
  default     = []
}

variable "domain" {
  description = "A domain in Route 53 for the API (and FQDNs for dev servers); empty: CloudFront's own name."
  type        = string
  default     = ""
}

variable "open_load_balancer" {
  description = "Whether the load balancer admits everybody, and not only CloudFront."
  type        = bool
  default     = false
}

variable "image_tag" {
  description = "Tag of the images that are built and released; empty: the version of the chart."
  type        = string
  default     = ""
}
