output "vpc_id" {
  value = module.network.vpc_id
}

output "subnet_id" {
  description = "The first of the subnets."
  value       = module.network.subnet_ids[0]
}

output "eks_cluster_name" {
  value = module.cluster.name
}

output "eks_cluster_endpoint" {
  value = module.cluster.endpoint
}

output "eks_cluster_arn" {
  value = module.cluster.arn
}

output "placement_group_names" {
  value = module.network.placement_groups
}

output "security_group_id" {
  value = module.network.node_security_group_id
}

output "supported_gpu_types" {
  value = local.gpu_types
}

output "cli_config" {
  description = "What users set to use this installation."
  value = {
    api_url = module.edge.url
    region  = var.aws_region
  }
}

output "ecr_repository_url" {
  value = module.registry.repositories["api-service"]
}

output "ecr_pull_through_cache_urls" {
  value = module.registry.pull_through_cache_urls
}

output "api_service_url" {
  description = "HTTPS, through CloudFront."
  value       = module.edge.url
}

output "api_service_url_loadbalancer" {
  value = "http://${module.platform.load_balancer_hostname}"
}

output "api_service_loadbalancer_url" {
  description = "The same by its other name."
  value       = "http://${module.platform.load_balancer_hostname}"
}
