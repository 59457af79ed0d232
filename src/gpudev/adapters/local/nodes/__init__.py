"""The nodes that this machine plays: its own GPUs, or simulated ones."""
