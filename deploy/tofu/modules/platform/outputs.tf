output "load_balancer_hostname" {
  value = data.kubernetes_service_v1.public.status[0].load_balancer[0].ingress[0].hostname
}

output "ssh_proxy_hostname" {
  value = data.kubernetes_service_v1.ssh_proxy.status[0].load_balancer[0].ingress[0].hostname
}

output "registry_mirrors" {
  description = "Address of a cache by the host that it caches."
  value = {
    for host, service in data.kubernetes_service_v1.cache :
    host => "${service.status[0].load_balancer[0].ingress[0].hostname}:5000"
  }
}
