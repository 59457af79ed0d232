"""What the application needs from the world. The docstrings are what every adapter is tested on."""
