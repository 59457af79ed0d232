# VPC, one public subnet a zone (dev servers are reached by node ports), security groups, placement groups.
data "aws_availability_zones" "available" {
  state = "available"

  filter {
    name   = "opt-in-status"
    values = ["opt-in-not-required"]
  }
}

data "aws_ec2_managed_prefix_list" "cloudfront" {
  name = "com.amazonaws.global.cloudfront.origin-facing"
}

locals {
  cidr  = "10.0.0.0/16"
  zones = slice(data.aws_availability_zones.available.names, 0, min(3, length(data.aws_availability_zones.available.names)))
}

resource "aws_vpc" "this" {
  cidr_block           = local.cidr
  enable_dns_support   = true
  enable_dns_hostnames = true

  tags = { Name = var.prefix }
}

# Nothing uses it, so nothing may pass it.
resource "aws_default_security_group" "closed" {
  vpc_id = aws_vpc.this.id
}

resource "aws_internet_gateway" "this" {
  vpc_id = aws_vpc.this.id

  tags = { Name = var.prefix }
}

resource "aws_subnet" "public" {
  for_each = { for number, zone in local.zones : zone => number }

  vpc_id                  = aws_vpc.this.id
  availability_zone       = each.key
  cidr_block              = cidrsubnet(local.cidr, 4, each.value)
  map_public_ip_on_launch = true

  tags = {
    Name                                        = "${var.prefix}-${each.key}"
    "kubernetes.io/role/elb"                    = "1"
    "kubernetes.io/cluster/${var.cluster_name}" = "shared"
  }
}

resource "aws_route_table" "public" {
  vpc_id = aws_vpc.this.id

  tags = { Name = var.prefix }
}

resource "aws_route" "internet" {
  route_table_id         = aws_route_table.public.id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.this.id
}

resource "aws_route_table_association" "public" {
  for_each = aws_subnet.public

  subnet_id      = each.value.id
  route_table_id = aws_route_table.public.id
}

resource "aws_security_group" "node" {
  name        = "${var.prefix}-nodes"
  description = "Nodes of ${var.cluster_name}"
  vpc_id      = aws_vpc.this.id

  tags = { "kubernetes.io/cluster/${var.cluster_name}" = "owned" }
}

resource "aws_vpc_security_group_ingress_rule" "node_from_node" {
  security_group_id            = aws_security_group.node.id
  description                  = "Nodes among themselves"
  referenced_security_group_id = aws_security_group.node.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_ingress_rule" "ssh_of_dev_servers" {
  security_group_id = aws_security_group.node.id
  description       = "SSH to dev servers by node port; they ask for a key"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = 30000
  to_port           = 32767
}

resource "aws_vpc_security_group_egress_rule" "node" {
  security_group_id = aws_security_group.node.id
  description       = "Dev servers reach the internet"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}

# EFA wants a group that admits itself in both directions, and nothing less.
resource "aws_security_group" "efa" {
  name        = "${var.prefix}-efa"
  description = "EFA between nodes of ${var.cluster_name}"
  vpc_id      = aws_vpc.this.id
}

resource "aws_vpc_security_group_ingress_rule" "efa" {
  security_group_id            = aws_security_group.efa.id
  description                  = "EFA"
  referenced_security_group_id = aws_security_group.efa.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "efa" {
  security_group_id            = aws_security_group.efa.id
  description                  = "EFA"
  referenced_security_group_id = aws_security_group.efa.id
  ip_protocol                  = "-1"
}

resource "aws_placement_group" "gpu" {
  for_each = toset(var.gpu_types)

  name     = "${var.prefix}-${each.key}"
  strategy = "cluster"
}
