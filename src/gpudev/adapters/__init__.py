"""The outside world behind the ports: one package a vendor, none knows another."""
