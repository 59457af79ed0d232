# The whole system: `tofu init && tofu apply`. Each module is one noun; this file says how they hang together.
provider "aws" {
  region = var.aws_region

  default_tags {
    tags = {
      Project     = "gpu-dev"
      Environment = var.environment
    }
  }
}

provider "kubernetes" {
  host                   = module.cluster.endpoint
  cluster_ca_certificate = base64decode(module.cluster.certificate_authority)

  exec {
    api_version = "client.authentication.k8s.io/v1"
    command     = "aws"
    args        = ["eks", "get-token", "--cluster-name", module.cluster.name, "--region", var.aws_region]
  }
}

provider "helm" {
  kubernetes = {
    host                   = module.cluster.endpoint
    cluster_ca_certificate = base64decode(module.cluster.certificate_authority)

    exec = {
      api_version = "client.authentication.k8s.io/v1"
      command     = "aws"
      args        = ["eks", "get-token", "--cluster-name", module.cluster.name, "--region", var.aws_region]
    }
  }
}

data "aws_caller_identity" "current" {}

locals {
  workspace_environment = terraform.workspace == "default" ? "test" : terraform.workspace

  # The types whose machine is instance_type, where nothing else was said.
  default_gpu_types = {
    for name, type in local.catalogue : name => { "" = {
      size                    = var.gpu_instance_count
      capacity_reservation_id = null
      availability_zone       = null
      managed                 = false
      profiling               = false
      system                  = "al2023"
    } } if type.instance_type == var.instance_type
  }
  gpu_types = var.supported_gpu_types == null ? local.default_gpu_types : var.supported_gpu_types
}

# The settings of one environment in the workspace of another would replace it. This fails the plan, so that nothing
# is applied; nothing needs to depend on it, and what did would not be known before.
resource "terraform_data" "workspace_matches" {
  input = var.environment

  lifecycle {
    precondition {
      condition     = var.environment == local.workspace_environment
      error_message = "Workspace ${terraform.workspace} is for ${local.workspace_environment}, and these variables are for ${var.environment}. Use -var-file prod.tfvars in the workspace prod, and nowhere else."
    }
    precondition {
      condition     = length(local.gpu_types) > 0
      error_message = "No GPU type of catalogue.tf.json has the machine ${var.instance_type}."
    }
  }
}

module "network" {
  source = "./modules/network"

  prefix       = var.prefix
  cluster_name = local.cluster_name
  gpu_types    = keys(local.gpu_types)
}

module "cluster" {
  source = "./modules/cluster"

  name                  = local.cluster_name
  prefix                = var.prefix
  subnet_ids            = module.network.subnet_ids
  node_security_group   = module.network.node_security_group_id
  allowed_node_role_arn = module.gpu_nodes_role.arn
}

module "gpu_nodes_role" {
  source = "./modules/node-role"

  name = "${var.prefix}-gpu-nodes"
}

module "gpu_nodes" {
  source = "./modules/gpu-nodes"

  prefix                = var.prefix
  catalogue             = local.catalogue
  gpu_types             = local.gpu_types
  cluster               = module.cluster.join
  subnets               = module.network.subnets
  security_group_id     = module.network.node_security_group_id
  efa_security_group_id = module.network.efa_security_group_id
  placement_groups      = module.network.placement_groups
  node_role             = module.gpu_nodes_role
  registry_mirrors      = module.platform.registry_mirrors
}

module "storage" {
  source = "./modules/storage"

  prefix               = var.prefix
  account              = data.aws_caller_identity.current.account_id
  vpc_id               = module.network.vpc_id
  subnets              = module.network.subnets
  node_security_group  = module.network.node_security_group_id
  cluster_is_reachable = module.cluster.is_reachable
}

module "registry" {
  source = "./modules/registry"

  prefix             = var.prefix
  dockerhub_username = var.dockerhub_username
  dockerhub_token    = var.dockerhub_token
}

module "edge" {
  source = "./modules/edge"

  prefix                 = var.prefix
  domain                 = var.domain
  load_balancer_hostname = module.platform.load_balancer_hostname
  ssh_proxy_hostname     = module.platform.ssh_proxy_hostname
}

module "monitoring" {
  source = "./modules/monitoring"

  grafana_admin_password = var.grafana_admin_password
  storage_class          = module.storage.storage_class
}

module "platform" {
  source = "./modules/platform"

  region                 = var.aws_region
  account                = data.aws_caller_identity.current.account_id
  prefix                 = var.prefix
  cluster_name           = module.cluster.name
  oidc                   = module.cluster.oidc
  repositories           = module.registry.repositories
  contents_bucket        = module.storage.contents_bucket
  storage_class          = module.storage.storage_class
  vpc_cidr               = module.network.vpc_cidr
  image_tag              = var.image_tag
  ghcr_username          = var.ghcr_username
  ghcr_token             = var.ghcr_token
  admins                 = var.admins
  allowed_role           = var.allowed_role
  domain                 = var.domain
  load_balancer_prefixes = var.open_load_balancer ? [] : [module.network.cloudfront_prefix_list_id]

  # Its monitors and rules are objects that come with Prometheus.
  depends_on = [module.monitoring]
}

locals {
  cluster_name = "${var.prefix}-cluster"
}
