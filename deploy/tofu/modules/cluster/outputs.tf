output "name" {
  value = aws_eks_cluster.this.name
}

output "arn" {
  value = aws_eks_cluster.this.arn
}

output "endpoint" {
  value = aws_eks_cluster.this.endpoint
}

output "certificate_authority" {
  value = aws_eks_cluster.this.certificate_authority[0].data
}

output "oidc" {
  description = "What a role for a service account trusts."
  value = {
    provider_arn = aws_iam_openid_connect_provider.this.arn
    issuer       = local.issuer
  }
}

output "join" {
  description = "What a node must know to join."
  value = {
    name                  = aws_eks_cluster.this.name
    version               = var.kubernetes_version
    endpoint              = aws_eks_cluster.this.endpoint
    certificate_authority = aws_eks_cluster.this.certificate_authority[0].data
    service_cidr          = aws_eks_cluster.this.kubernetes_network_config[0].service_ipv4_cidr
    security_group_id     = aws_eks_cluster.this.vpc_config[0].cluster_security_group_id
  }
}

output "is_reachable" {
  description = "True once there are nodes; for what is put into the cluster."
  value       = aws_eks_node_group.cpu.status != ""
}
