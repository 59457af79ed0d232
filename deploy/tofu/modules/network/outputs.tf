output "vpc_id" {
  value = aws_vpc.this.id
}

output "vpc_cidr" {
  value = aws_vpc.this.cidr_block
}

output "subnets" {
  description = "Subnet by zone."
  value       = { for zone, subnet in aws_subnet.public : zone => subnet.id }
}

output "subnet_ids" {
  value = [for zone in local.zones : aws_subnet.public[zone].id]
}

output "node_security_group_id" {
  value = aws_security_group.node.id
}

output "efa_security_group_id" {
  value = aws_security_group.efa.id
}

output "placement_groups" {
  description = "Placement group by GPU type."
  value       = { for type, group in aws_placement_group.gpu : type => group.name }
}

output "cloudfront_prefix_list_id" {
  value = data.aws_ec2_managed_prefix_list.cloudfront.id
}
