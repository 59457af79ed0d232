variable "prefix" {
  type = string
}

variable "catalogue" {
  description = "The GPU types, as catalogue.tf.json has them."
  type = map(object({
    instance_type  = string
    gpus_per_node  = number
    efa_interfaces = number
    architecture   = string
  }))
}

variable "gpu_types" {
  description = "Groups of nodes by type and suffix."
  type = map(map(object({
    size                    = number
    capacity_reservation_id = string
    availability_zone       = string
    managed                 = bool
    profiling               = bool
    system                  = string
  })))

  validation {
    condition = alltrue(flatten([
      for groups in values(var.gpu_types) : [for group in values(groups) : contains(["al2023", "al2", "ubuntu2204"], group.system)]
    ]))
    error_message = "The system of a node is al2023, al2 or ubuntu2204."
  }

  validation {
    # A managed group takes the user data of its own image; ours is for the groups that we start.
    condition = alltrue(flatten([
      for groups in values(var.gpu_types) : [for group in values(groups) : !group.managed || group.system == "al2023"]
    ]))
    error_message = "A managed group is of al2023."
  }
}

variable "cluster" {
  type = object({
    name                  = string
    version               = string
    endpoint              = string
    certificate_authority = string
    service_cidr          = string
    security_group_id     = string
  })
}

variable "subnets" {
  description = "Subnet by zone."
  type        = map(string)
}

variable "security_group_id" {
  type = string
}

variable "efa_security_group_id" {
  type = string
}

variable "placement_groups" {
  description = "Placement group by type."
  type        = map(string)
}

variable "node_role" {
  type = object({
    arn                  = string
    instance_profile_arn = string
  })
}

variable "registry_mirrors" {
  description = "Address of a cache by the host that it caches."
  type        = map(string)
}
