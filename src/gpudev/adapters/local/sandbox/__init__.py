"""How dev servers are kept apart."""
