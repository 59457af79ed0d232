# EKS, who may speak to it, its add-ons, and the nodes of the control plane.
resource "aws_iam_role" "cluster" {
  name = "${var.name}-control"

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = ["sts:AssumeRole", "sts:TagSession"]
      Principal = { Service = "eks.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy_attachment" "cluster" {
  role       = aws_iam_role.cluster.name
  policy_arn = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
}

resource "aws_kms_key" "secrets" {
  description             = "Secrets of ${var.name}"
  enable_key_rotation     = true
  deletion_window_in_days = 30
}

resource "aws_eks_cluster" "this" {
  name                      = var.name
  version                   = var.kubernetes_version
  role_arn                  = aws_iam_role.cluster.arn
  enabled_cluster_log_types = ["api", "audit", "authenticator", "controllerManager", "scheduler"]

  access_config {
    authentication_mode                         = "API"
    bootstrap_cluster_creator_admin_permissions = true
  }

  vpc_config {
    subnet_ids              = var.subnet_ids
    security_group_ids      = [var.node_security_group]
    endpoint_private_access = true
    endpoint_public_access  = true
  }

  # The chart closes this network to dev servers, so it is not left to chance.
  kubernetes_network_config {
    service_ipv4_cidr = "172.20.0.0/16"
  }

  encryption_config {
    resources = ["secrets"]

    provider {
      key_arn = aws_kms_key.secrets.arn
    }
  }

  depends_on = [aws_iam_role_policy_attachment.cluster]
}

resource "aws_eks_access_entry" "nodes" {
  cluster_name  = aws_eks_cluster.this.name
  principal_arn = var.allowed_node_role_arn
  type          = "EC2_LINUX"
}

data "tls_certificate" "oidc" {
  url = aws_eks_cluster.this.identity[0].oidc[0].issuer
}

resource "aws_iam_openid_connect_provider" "this" {
  url             = aws_eks_cluster.this.identity[0].oidc[0].issuer
  client_id_list  = ["sts.amazonaws.com"]
  thumbprint_list = [data.tls_certificate.oidc.certificates[0].sha1_fingerprint]
}

locals {
  issuer = trimprefix(aws_eks_cluster.this.identity[0].oidc[0].issuer, "https://")
}

resource "aws_eks_addon" "this" {
  for_each = {
    # Dev servers are kept apart by NetworkPolicies, so somebody must enforce them.
    vpc-cni                = jsonencode({ enableNetworkPolicy = "true" })
    kube-proxy             = null
    coredns                = null
    eks-pod-identity-agent = null
    metrics-server         = null
    aws-ebs-csi-driver     = null
    aws-efs-csi-driver     = null
  }

  cluster_name                = aws_eks_cluster.this.name
  addon_name                  = each.key
  configuration_values        = each.value
  service_account_role_arn    = contains(keys(aws_iam_role.storage_driver), each.key) ? aws_iam_role.storage_driver[each.key].arn : null
  resolve_conflicts_on_create = "OVERWRITE"
  resolve_conflicts_on_update = "PRESERVE"

  depends_on = [aws_eks_node_group.cpu]
}

resource "aws_iam_role" "storage_driver" {
  for_each = {
    aws-ebs-csi-driver = "ebs-csi-controller-sa"
    aws-efs-csi-driver = "efs-csi-controller-sa"
  }

  name = "${var.name}-${each.key}"

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRoleWithWebIdentity"
      Principal = { Federated = aws_iam_openid_connect_provider.this.arn }
      Condition = {
        StringEquals = {
          "${local.issuer}:aud" = "sts.amazonaws.com"
          "${local.issuer}:sub" = "system:serviceaccount:kube-system:${each.value}"
        }
      }
    }]
  })
}

resource "aws_iam_role_policy_attachment" "storage_driver" {
  for_each = {
    aws-ebs-csi-driver = "AmazonEBSCSIDriverPolicy"
    aws-efs-csi-driver = "AmazonEFSCSIDriverPolicy"
  }

  role       = aws_iam_role.storage_driver[each.key].name
  policy_arn = "arn:aws:iam::aws:policy/service-role/${each.value}"
}

module "cpu_role" {
  source = "../node-role"

  name = "${var.prefix}-cpu-nodes"
}

resource "aws_launch_template" "cpu" {
  name_prefix            = "${var.prefix}-cpu-nodes-"
  vpc_security_group_ids = [var.node_security_group]

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  block_device_mappings {
    device_name = "/dev/xvda"

    ebs {
      volume_size = 100
      volume_type = "gp3"
      encrypted   = true
    }
  }
}

# The control plane runs here, and nothing of a user.
resource "aws_eks_node_group" "cpu" {
  cluster_name    = aws_eks_cluster.this.name
  node_group_name = "${var.prefix}-cpu-nodes"
  node_role_arn   = module.cpu_role.arn
  subnet_ids      = var.subnet_ids
  instance_types  = ["m7i.xlarge"]
  ami_type        = "AL2023_x86_64_STANDARD"
  labels          = { node-role = "cpu" }

  launch_template {
    id      = aws_launch_template.cpu.id
    version = aws_launch_template.cpu.latest_version
  }

  scaling_config {
    min_size     = 1
    max_size     = 4
    desired_size = 2
  }

  update_config {
    max_unavailable = 1
  }

  lifecycle {
    # An autoscaler or an operator may have changed it.
    ignore_changes = [scaling_config[0].desired_size]
  }
}
