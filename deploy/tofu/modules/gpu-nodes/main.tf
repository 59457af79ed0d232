# Groups of GPU nodes of a fixed size. A reservation is a promise, so nothing scales them away.
locals {
  groups = merge([
    for type, groups in var.gpu_types : {
      for suffix, group in groups : join("-", compact([type, suffix])) => merge(group, {
        type      = type
        name      = join("-", compact(["${var.prefix}-gpu-nodes", type, suffix]))
        facts     = var.catalogue[type]
        user_data = "${group.system}-${var.catalogue[type].gpus_per_node > 0 ? "gpu" : "cpu"}"
        # All nodes of a type in one zone: a gang must be near itself, and disks live in a zone.
        zone = coalesce(group.availability_zone, sort(keys(var.subnets))[0])
      })
    }
  ]...)

  images = {
    al2023-gpu     = "/aws/service/eks/optimized-ami/${var.cluster.version}/amazon-linux-2023/x86_64/nvidia/recommended/image_id"
    al2023-cpu     = "/aws/service/eks/optimized-ami/${var.cluster.version}/amazon-linux-2023/x86_64/standard/recommended/image_id"
    al2023-cpu-arm = "/aws/service/eks/optimized-ami/${var.cluster.version}/amazon-linux-2023/arm64/standard/recommended/image_id"
    al2-gpu        = "/aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/recommended/image_id"
    al2-cpu        = "/aws/service/eks/optimized-ami/1.32/amazon-linux-2/recommended/image_id"
    ubuntu2204-gpu = "/aws/service/canonical/ubuntu/eks/22.04/1.32/stable/current/amd64/hvm/ebs-gp2/ami-id"
    ubuntu2204-cpu = "/aws/service/canonical/ubuntu/eks/22.04/1.32/stable/current/amd64/hvm/ebs-gp2/ami-id"
  }
  image_of = {
    for key, group in local.groups :
    key => group.facts.architecture == "arm64" ? "${group.user_data}-arm" : group.user_data
  }
}

data "aws_ssm_parameter" "image" {
  for_each = toset(values(local.image_of))

  name = local.images[each.key]
}

resource "aws_launch_template" "gpu" {
  for_each = local.groups

  name          = each.value.name
  image_id      = each.value.managed ? null : data.aws_ssm_parameter.image[local.image_of[each.key]].value
  instance_type = each.value.facts.instance_type
  user_data = base64encode(templatefile("${path.module}/user-data/${each.value.system}.tftpl", {
    cluster     = var.cluster
    labels      = local.labels[each.key]
    taints      = local.taints[each.key]
    environment = local.environment[each.key]
    prepare     = file("${path.module}/user-data/prepare.sh")
  }))

  metadata_options {
    http_endpoint = "enabled"
    http_tokens   = "required"
    # A container is one hop further than its node: the node's credentials are not for dev servers.
    http_put_response_hop_limit = 1
  }

  dynamic "iam_instance_profile" {
    for_each = each.value.managed ? [] : [var.node_role.instance_profile_arn]

    content {
      arn = iam_instance_profile.value
    }
  }

  block_device_mappings {
    device_name = each.value.system == "ubuntu2204" ? "/dev/sda1" : "/dev/xvda"

    ebs {
      volume_size = 1000
      volume_type = "gp3"
      iops        = 6000
      throughput  = 500
      encrypted   = true
    }
  }

  dynamic "network_interfaces" {
    for_each = range(max(1, each.value.facts.efa_interfaces))

    content {
      device_index                = network_interfaces.value == 0 ? 0 : 1
      network_card_index          = network_interfaces.value
      interface_type              = each.value.facts.efa_interfaces > 0 ? "efa" : "interface"
      associate_public_ip_address = each.value.facts.efa_interfaces > 1 ? null : true
      delete_on_termination       = true
      security_groups             = [var.security_group_id, var.efa_security_group_id, var.cluster.security_group_id]
    }
  }

  dynamic "placement" {
    for_each = each.value.facts.efa_interfaces > 0 ? [var.placement_groups[each.value.type]] : []

    content {
      group_name = placement.value
    }
  }

  dynamic "capacity_reservation_specification" {
    for_each = each.value.capacity_reservation_id == null ? [] : [each.value.capacity_reservation_id]

    content {
      capacity_reservation_target {
        capacity_reservation_id = capacity_reservation_specification.value
      }
    }
  }

  tag_specifications {
    resource_type = "instance"

    tags = {
      Name     = each.value.name
      gpu-type = each.value.type
    }
  }
}

locals {
  labels = {
    for key, group in local.groups : key => merge(
      { gpu-type = group.type },
      group.profiling ? { "gpu.monitoring/profiling-dedicated" = "true", nsight = "true" } : {},
    )
  }
  taints = {
    for key, group in local.groups : key => group.facts.gpus_per_node > 0 ? { "nvidia.com/gpu" = "present:NoSchedule" } : {}
  }
  # What prepare.sh is told. Values never become part of its text.
  environment = {
    for key, group in local.groups : key => {
      HAS_GPU          = group.facts.gpus_per_node > 0 ? "true" : "false"
      PROFILING        = group.profiling ? "true" : "false"
      REGISTRY_MIRRORS = join(" ", [for host, mirror in var.registry_mirrors : "${host}=${mirror}"])
    }
  }
}

resource "aws_autoscaling_group" "gpu" {
  for_each = { for key, group in local.groups : key => group if !group.managed }

  name                = each.value.name
  min_size            = each.value.size
  max_size            = each.value.size
  desired_capacity    = each.value.size
  vpc_zone_identifier = [var.subnets[each.value.zone]]
  health_check_type   = "EC2"
  # Somebody works there. A node is replaced by an operator, after its reservations have ended.
  protect_from_scale_in = true
  suspended_processes   = ["AZRebalance", "ReplaceUnhealthy"]

  launch_template {
    id      = aws_launch_template.gpu[each.key].id
    version = aws_launch_template.gpu[each.key].latest_version
  }

  tag {
    key                 = "kubernetes.io/cluster/${var.cluster.name}"
    value               = "owned"
    propagate_at_launch = true
  }

  tag {
    key                 = "gpu-type"
    value               = each.value.type
    propagate_at_launch = true
  }
}

resource "aws_eks_node_group" "gpu" {
  for_each = { for key, group in local.groups : key => group if group.managed }

  cluster_name    = var.cluster.name
  node_group_name = each.value.name
  node_role_arn   = var.node_role.arn
  subnet_ids      = [var.subnets[each.value.zone]]
  ami_type        = each.value.facts.gpus_per_node > 0 ? "AL2023_x86_64_NVIDIA" : (each.value.facts.architecture == "arm64" ? "AL2023_ARM_64_STANDARD" : "AL2023_x86_64_STANDARD")
  capacity_type   = each.value.capacity_reservation_id == null ? "ON_DEMAND" : "CAPACITY_BLOCK"
  labels          = local.labels[each.key]

  launch_template {
    id      = aws_launch_template.gpu[each.key].id
    version = aws_launch_template.gpu[each.key].latest_version
  }

  scaling_config {
    min_size     = each.value.size
    max_size     = each.value.size
    desired_size = each.value.size
  }

  dynamic "taint" {
    for_each = local.taints[each.key]

    content {
      key    = taint.key
      value  = "present"
      effect = "NO_SCHEDULE"
    }
  }
}
