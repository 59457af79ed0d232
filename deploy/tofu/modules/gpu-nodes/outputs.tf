output "group_names" {
  description = "Names of all groups of nodes."
  value       = sort([for group in values(local.groups) : group.name])
}
