# NVIDIA's operator and Prometheus with Grafana, at the versions that were tried.
variable "grafana_admin_password" {
  type      = string
  sensitive = true
}

variable "storage_class" {
  type = string
}

resource "helm_release" "gpu_operator" {
  name             = "gpu-operator"
  namespace        = "gpu-operator"
  create_namespace = true
  repository       = "https://helm.ngc.nvidia.com/nvidia"
  chart            = "gpu-operator"
  version          = "v25.3.3"

  values = [yamlencode({
    # The images of the nodes bring the driver and the toolkit.
    driver  = { enabled = false }
    toolkit = { enabled = false }
    # Devices are given by CDI: a pod that sets NVIDIA_VISIBLE_DEVICES gets no GPU of somebody else.
    cdi = { enabled = true, default = true }
    devicePlugin = {
      env = [
        { name = "DEVICE_LIST_STRATEGY", value = "cdi-cri" },
        { name = "FAIL_ON_INIT_ERROR", value = "true" },
      ]
    }
    dcgmExporter = {
      enabled        = true
      serviceMonitor = { enabled = true, interval = "15s", additionalLabels = { release = "kube-prometheus-stack" } }
      # DCGM and a profiler want the same counters.
      affinity = {
        nodeAffinity = {
          requiredDuringSchedulingIgnoredDuringExecution = {
            nodeSelectorTerms = [{
              matchExpressions = [{ key = "gpu.monitoring/profiling-dedicated", operator = "NotIn", values = ["true"] }]
            }]
          }
        }
      }
    }
    daemonsets = { tolerations = [{ key = "nvidia.com/gpu", operator = "Exists", effect = "NoSchedule" }] }
  })]

  depends_on = [helm_release.prometheus]
}

resource "helm_release" "prometheus" {
  name             = "kube-prometheus-stack"
  namespace        = "monitoring"
  create_namespace = true
  repository       = "https://prometheus-community.github.io/helm-charts"
  chart            = "kube-prometheus-stack"
  version          = "67.9.0"

  values = [yamlencode({
    grafana = {
      service = { type = "NodePort", nodePort = 30080 }
      sidecar = { dashboards = { enabled = true, searchNamespace = "ALL" } }
      dashboardProviders = {
        "dashboardproviders.yaml" = {
          apiVersion = 1
          providers  = [{ name = "default", type = "file", options = { path = "/var/lib/grafana/dashboards/default" } }]
        }
      }
      dashboards = { default = { dcgm = { gnetId = 12239, revision = 2, datasource = "Prometheus" } } }
    }
    prometheus = {
      prometheusSpec = {
        retention = "15d"
        storageSpec = {
          volumeClaimTemplate = {
            spec = {
              storageClassName = var.storage_class
              accessModes      = ["ReadWriteOnce"]
              resources        = { requests = { storage = "50Gi" } }
            }
          }
        }
      }
    }
  })]

  set_sensitive = [{ name = "grafana.adminPassword", value = var.grafana_admin_password }]
}
