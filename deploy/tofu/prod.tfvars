# tofu workspace select prod && tofu apply -var-file prod.tfvars
environment        = "prod"
aws_region         = "us-east-2"
instance_type      = "p4d.24xlarge"
gpu_instance_count = 2
