"""The engine under every controller."""
