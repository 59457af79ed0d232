"""Deciders: one frozen observation in, a tuple of actions out."""
