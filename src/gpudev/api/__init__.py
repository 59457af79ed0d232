"""The HTTP service: routes, the translation between rules and wire, and one table of errors."""
