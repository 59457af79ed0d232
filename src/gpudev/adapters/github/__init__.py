"""GitHub: the public SSH keys of its users."""
