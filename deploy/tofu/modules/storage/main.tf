# What outlives a dev server: the shared file system, the class of disks, the lists of what is on them.
resource "aws_efs_file_system" "shared" {
  creation_token   = "${var.prefix}-shared"
  encrypted        = true
  throughput_mode  = "elastic"
  performance_mode = "generalPurpose"

  lifecycle_policy {
    transition_to_ia = "AFTER_30_DAYS"
  }

  lifecycle {
    prevent_destroy = true
  }

  tags = { Name = "${var.prefix}-shared" }
}

resource "aws_efs_backup_policy" "shared" {
  file_system_id = aws_efs_file_system.shared.id

  backup_policy {
    status = "ENABLED"
  }
}

resource "aws_security_group" "efs" {
  name        = "${var.prefix}-efs"
  description = "Shared file system of ${var.prefix}"
  vpc_id      = var.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "efs" {
  security_group_id            = aws_security_group.efs.id
  description                  = "NFS from the nodes"
  referenced_security_group_id = var.node_security_group
  ip_protocol                  = "tcp"
  from_port                    = 2049
  to_port                      = 2049
}

resource "aws_efs_mount_target" "shared" {
  for_each = var.subnets

  file_system_id  = aws_efs_file_system.shared.id
  subnet_id       = each.value
  security_groups = [aws_security_group.efs.id]
}

# The dev user of dev servers is 1081.
resource "aws_efs_access_point" "shared" {
  for_each = toset(["shared", "ccache"])

  file_system_id = aws_efs_file_system.shared.id

  posix_user {
    uid = 1081
    gid = 1081
  }

  root_directory {
    path = "/${each.key}"

    creation_info {
      owner_uid   = 1081
      owner_gid   = 1081
      permissions = "0770"
    }
  }
}

resource "kubernetes_storage_class_v1" "gp3" {
  metadata {
    name        = "gp3"
    annotations = { "storageclass.kubernetes.io/is-default-class" = tostring(var.cluster_is_reachable) }
  }

  storage_provisioner    = "ebs.csi.aws.com"
  reclaim_policy         = "Retain"
  volume_binding_mode    = "WaitForFirstConsumer"
  allow_volume_expansion = true

  parameters = {
    type      = "gp3"
    encrypted = "true"
  }
}

resource "aws_s3_bucket" "contents" {
  bucket = "${var.prefix}-disk-contents-${var.account}"

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_s3_bucket_public_access_block" "contents" {
  bucket                  = aws_s3_bucket.contents.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_server_side_encryption_configuration" "contents" {
  bucket = aws_s3_bucket.contents.id

  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm = "aws:kms"
    }
  }
}

resource "aws_s3_bucket_versioning" "contents" {
  bucket = aws_s3_bucket.contents.id

  versioning_configuration {
    status = "Enabled"
  }
}
