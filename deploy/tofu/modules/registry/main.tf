# Images: ours, those that users build, and ECR's cache of Docker Hub.
variable "prefix" {
  type = string
}

variable "dockerhub_username" {
  type = string
}

variable "dockerhub_token" {
  type      = string
  sensitive = true
}

locals {
  ours = ["api-service", "dev-server"]
}

resource "aws_ecr_repository" "ours" {
  for_each = toset(local.ours)

  name                 = "${var.prefix}-${each.key}"
  image_tag_mutability = "IMMUTABLE"

  image_scanning_configuration {
    scan_on_push = true
  }

  encryption_configuration {
    encryption_type = "KMS"
  }
}

# What users build from a Dockerfile: they overwrite their own tags.
resource "aws_ecr_repository" "custom" {
  name                 = "gpu-dev-custom-images"
  image_tag_mutability = "MUTABLE"

  image_scanning_configuration {
    scan_on_push = true
  }

  encryption_configuration {
    encryption_type = "KMS"
  }
}

resource "aws_ecr_lifecycle_policy" "custom" {
  repository = aws_ecr_repository.custom.name

  policy = jsonencode({
    rules = [{
      rulePriority = 1
      description  = "Nobody pulls what is older than a month"
      selection    = { tagStatus = "any", countType = "sinceImagePushed", countUnit = "days", countNumber = 30 }
      action       = { type = "expire" }
    }]
  })
}

# The name is not ours to choose: ECR wants this prefix.
resource "aws_secretsmanager_secret" "dockerhub" {
  count = var.dockerhub_username == "" ? 0 : 1

  name = "ecr-pullthroughcache/${var.prefix}-dockerhub"
}

resource "aws_secretsmanager_secret_version" "dockerhub" {
  count = var.dockerhub_username == "" ? 0 : 1

  secret_id     = aws_secretsmanager_secret.dockerhub[0].id
  secret_string = jsonencode({ username = var.dockerhub_username, accessToken = var.dockerhub_token })
}

resource "aws_ecr_pull_through_cache_rule" "dockerhub" {
  count = var.dockerhub_username == "" ? 0 : 1

  ecr_repository_prefix = "dockerhub"
  upstream_registry_url = "registry-1.docker.io"
  credential_arn        = aws_secretsmanager_secret.dockerhub[0].arn
}

output "repositories" {
  description = "Address of a repository by the name of its image."
  value       = { for name, repository in aws_ecr_repository.ours : name => repository.repository_url }
}

output "pull_through_cache_urls" {
  value = {
    for rule in aws_ecr_pull_through_cache_rule.dockerhub :
    rule.upstream_registry_url => "${split("/", aws_ecr_repository.custom.repository_url)[0]}/${rule.ecr_repository_prefix}/"
  }
}
