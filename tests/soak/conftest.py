"""Load and endurance, at the whole product: only `make test-soak` collects this folder."""
