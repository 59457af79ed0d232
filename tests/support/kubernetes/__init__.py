"""A real Kubernetes for the tests: API server, two nodes and simulated ones, on this machine, without Docker.

Every node is a set of Linux namespaces of its own (processes, mounts, network, host name), so that two
kubelets never meet and killing one process takes a whole node away. See docs/howto/test-cluster.md.
"""
