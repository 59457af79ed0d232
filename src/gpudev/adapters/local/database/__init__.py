"""PostgreSQL as a child of ours: no installation, no service, no port."""
