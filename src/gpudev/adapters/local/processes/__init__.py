"""What Linux knows of processes: identities that last, descendants, descriptors, namespaces."""
