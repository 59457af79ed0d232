# Asked for by a short name, to learn from OpenTofu where it would look.
terraform {
  required_providers {
    aws = {
      source = "hashicorp/aws"
    }
  }
}
