"""Our objects as the Kubernetes API wants them: values in, JSON out, nothing else."""
