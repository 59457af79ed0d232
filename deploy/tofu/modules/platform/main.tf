# Our images, the roles of our service accounts, and our chart.
locals {
  repository = "${path.module}/../../../.."
  chart      = "${local.repository}/deploy/helm/gpu-dev"
  version    = coalesce(var.image_tag, yamldecode(file("${local.chart}/Chart.yaml")).appVersion)
  images     = { api-service = "control-plane", dev-server = "dev-server" }
}

# One target each, to rebuild just that image: tofu apply -target 'module.platform.terraform_data.image["dev-server"]'
resource "terraform_data" "image" {
  for_each = local.images

  triggers_replace = [local.version, var.repositories[each.key]]

  provisioner "local-exec" {
    command = "${local.repository}/deploy/images/build.sh"

    environment = {
      IMAGE      = each.value
      REPOSITORY = var.repositories[each.key]
      TAG        = local.version
      REGION     = var.region
      PUSH       = "true"
    }
  }
}

locals {
  accounts = {
    controller = "gpu-dev-controller"
    api        = "gpu-dev-api"
    logs       = "gpu-dev-logs"
  }
  permissions = {
    # Disks: volumes and snapshots with our tag, and the lists of what is on them.
    controller = [
      {
        Sid    = "SeeVolumesAndGroups"
        Effect = "Allow"
        Action = [
          "ec2:DescribeVolumes", "ec2:DescribeSnapshots", "ec2:DescribeInstances", "ec2:DescribeAvailabilityZones",
          "autoscaling:DescribeAutoScalingGroups",
        ]
        Resource = "*"
      },
      {
        Sid       = "MakeDisks"
        Effect    = "Allow"
        Action    = ["ec2:CreateVolume", "ec2:CreateSnapshot"]
        Resource  = "*"
        Condition = { StringLike = { "aws:RequestTag/gpu-dev-user" = "*" } }
      },
      {
        # What a copy is made of has to be ours, too: a disk for its snapshot, a snapshot for the next volume.
        Sid       = "CopyDisks"
        Effect    = "Allow"
        Action    = ["ec2:CreateSnapshot", "ec2:CreateVolume"]
        Resource  = ["arn:aws:ec2:${var.region}:${var.account}:volume/*", "arn:aws:ec2:${var.region}::snapshot/*"]
        Condition = { StringLike = { "aws:ResourceTag/gpu-dev-user" = "*" } }
      },
      {
        Sid       = "TagWhatIsMade"
        Effect    = "Allow"
        Action    = ["ec2:CreateTags"]
        Resource  = ["arn:aws:ec2:${var.region}:${var.account}:volume/*", "arn:aws:ec2:${var.region}::snapshot/*"]
        Condition = { StringEquals = { "ec2:CreateAction" = ["CreateVolume", "CreateSnapshot"] } }
      },
      {
        Sid    = "ChangeDisks"
        Effect = "Allow"
        Action = [
          "ec2:AttachVolume", "ec2:DetachVolume", "ec2:ModifyVolume", "ec2:DeleteVolume", "ec2:DeleteSnapshot",
          "ec2:CreateTags", "ec2:DeleteTags",
        ]
        Resource  = "*"
        Condition = { StringLike = { "aws:ResourceTag/gpu-dev-user" = "*" } }
      },
      {
        Sid      = "ListContents"
        Effect   = "Allow"
        Action   = ["s3:GetObject", "s3:PutObject"]
        Resource = "arn:aws:s3:::${var.contents_bucket}/*"
      },
    ]
    # Who somebody is, is asked with their own signature. It reads the lists of disks, and compares disks with volumes.
    api = [
      {
        Sid      = "SeeVolumes"
        Effect   = "Allow"
        Action   = ["ec2:DescribeVolumes", "ec2:DescribeSnapshots"]
        Resource = "*"
      },
      {
        Sid      = "ReadContents"
        Effect   = "Allow"
        Action   = ["s3:GetObject"]
        Resource = "arn:aws:s3:::${var.contents_bucket}/*"
      },
    ]
    logs = [
      {
        Sid      = "WriteLogs"
        Effect   = "Allow"
        Action   = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents", "logs:PutRetentionPolicy", "logs:DescribeLogStreams"]
        Resource = "arn:aws:logs:${var.region}:${var.account}:log-group:/gpu-dev/*"
      },
    ]
  }
}

resource "aws_iam_role" "account" {
  for_each = local.accounts

  name = "${var.prefix}-${each.key}"

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRoleWithWebIdentity"
      Principal = { Federated = var.oidc.provider_arn }
      Condition = {
        StringEquals = {
          "${var.oidc.issuer}:aud" = "sts.amazonaws.com"
          "${var.oidc.issuer}:sub" = "system:serviceaccount:gpu-controlplane:${each.value}"
        }
      }
    }]
  })
}

resource "aws_iam_role_policy" "account" {
  for_each = local.accounts

  name   = "gpu-dev"
  role   = aws_iam_role.account[each.key].name
  policy = jsonencode({ Version = "2012-10-17", Statement = local.permissions[each.key] })
}

locals {
  load_balancer_annotations = length(var.load_balancer_prefixes) == 0 ? {} : {
    "service.beta.kubernetes.io/aws-load-balancer-security-group-prefix-lists" = join(",", var.load_balancer_prefixes)
  }
  role_annotation = { for key, role in aws_iam_role.account : key => { "eks.amazonaws.com/role-arn" = role.arn } }
}

resource "helm_release" "gpu_dev" {
  name             = "gpu-dev"
  namespace        = "gpu-controlplane"
  create_namespace = true
  chart            = local.chart
  timeout          = 1200

  values = [
    file("${local.chart}/values/aws.yaml"),
    yamlencode({
      image    = { repository = var.repositories["api-service"], tag = local.version }
      aws      = { region = var.region, clusterName = var.cluster_name, allowedAccounts = [var.account], allowedRole = var.allowed_role }
      settings = { GPU_DEV_DISK_LISTING_BUCKET = var.contents_bucket }
      access   = { admins = var.admins, publicNames = compact([var.domain == "" ? "" : "api.${var.domain}"]), trustedProxies = [var.vpc_cidr] }
      api = {
        serviceAccountAnnotations = local.role_annotation["api"]
        public                    = { annotations = local.load_balancer_annotations }
      }
      sshProxy       = { service = { annotations = local.load_balancer_annotations } }
      controllers    = { serviceAccountAnnotations = local.role_annotation["controller"] }
      postgres       = { storage = { className = var.storage_class } }
      registryCaches = { storageClassName = var.storage_class, clientNetworks = [var.vpc_cidr] }
      logs           = { cloudWatch = { serviceAccountAnnotations = local.role_annotation["logs"] } }
    }),
  ]

  set_sensitive = [
    { name = "registryCaches.ghcr.username", value = var.ghcr_username },
    { name = "registryCaches.ghcr.token", value = var.ghcr_token },
  ]

  depends_on = [terraform_data.image, aws_iam_role_policy.account]
}

data "kubernetes_service_v1" "public" {
  metadata {
    name      = "api-service-public"
    namespace = helm_release.gpu_dev.namespace
  }
}

data "kubernetes_service_v1" "ssh_proxy" {
  metadata {
    name      = "ssh-proxy"
    namespace = helm_release.gpu_dev.namespace
  }
}

data "kubernetes_service_v1" "cache" {
  for_each = { "ghcr.io" = "registry-ghcr", "docker.io" = "registry-dockerhub" }

  metadata {
    name      = each.value
    namespace = helm_release.gpu_dev.namespace
  }
}
