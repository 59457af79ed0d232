"""GitHub: the public SSH keys, memberships and signatures of its users."""
