# What would be made, without a cloud: `tofu test`.
mock_provider "aws" {
  mock_data "aws_availability_zones" {
    defaults = {
      names = ["us-west-1a", "us-west-1c"]
    }
  }

  mock_data "aws_caller_identity" {
    defaults = {
      account_id = "123456789012"
    }
  }

  mock_resource "aws_eks_cluster" {
    defaults = {
      identity              = [{ oidc = [{ issuer = "https://oidc.example/id/1" }] }]
      certificate_authority = [{ data = "Y2VydGlmaWNhdGU=" }]
    }
  }
}

mock_provider "helm" {}

mock_provider "kubernetes" {
  mock_data "kubernetes_service_v1" {
    defaults = {
      status = [{ load_balancer = [{ ingress = [{ hostname = "lb.example", ip = "" }] }] }]
    }
  }
}

mock_provider "tls" {
  mock_data "tls_certificate" {
    defaults = {
      certificates = [{ sha1_fingerprint = "0000000000000000000000000000000000000000" }]
    }
  }
}

variables {
  grafana_admin_password = "a long password"
}

run "test_environment_has_two_nodes_of_t4" {
  command = plan

  assert {
    condition     = output.supported_gpu_types["t4"][""].size == 2 && length(output.supported_gpu_types) == 1
    error_message = "The default is two nodes of g4dn.12xlarge."
  }

  assert {
    condition     = module.gpu_nodes.group_names == tolist(["pytorch-gpu-dev-gpu-nodes-t4"])
    error_message = "The group of nodes has the name that availability looks for."
  }
}

run "prod_variables_are_refused_in_the_default_workspace" {
  command = plan

  variables {
    environment = "prod"
  }

  expect_failures = [terraform_data.workspace_matches]
}

run "unknown_type_is_refused" {
  command = plan

  variables {
    supported_gpu_types = { z9 = { "" = { size = 1 } } }
  }

  expect_failures = [var.supported_gpu_types]
}

run "short_password_is_refused" {
  command = plan

  variables {
    grafana_admin_password = "short"
  }

  expect_failures = [var.grafana_admin_password]
}

run "reserved_and_on_demand_nodes_side_by_side" {
  command = plan

  variables {
    supported_gpu_types = {
      h100 = {
        ""       = { size = 1 }
        reserved = { size = 2, capacity_reservation_id = "cr-0123456789abcdef0", availability_zone = "us-west-1c" }
      }
      cpu-arm = { "" = { size = 1, managed = true } }
    }
  }

  assert {
    condition = module.gpu_nodes.group_names == tolist([
      "pytorch-gpu-dev-gpu-nodes-cpu-arm",
      "pytorch-gpu-dev-gpu-nodes-h100",
      "pytorch-gpu-dev-gpu-nodes-h100-reserved",
    ])
    error_message = "Each group has the name of its type, and its suffix."
  }
}
