"""The use cases, one a module. They know the rules and the ports, and no vendor."""
