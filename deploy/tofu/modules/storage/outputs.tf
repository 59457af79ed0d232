output "storage_class" {
  value = kubernetes_storage_class_v1.gp3.metadata[0].name
}

output "contents_bucket" {
  value = aws_s3_bucket.contents.id
}

output "file_system_id" {
  value = aws_efs_file_system.shared.id
}
