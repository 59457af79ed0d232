"""Dev servers as pods of a Kubernetes cluster."""
