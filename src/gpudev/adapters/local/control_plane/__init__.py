"""What keeps the control plane of one machine running."""
