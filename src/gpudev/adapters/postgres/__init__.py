"""PostgreSQL with PGMQ: all state and all work. The SQL is in `sql/`, one file a noun, each query named."""
