"""A dev server: how it is started, and what runs inside it."""
