"""What stands in where a part of the system cannot be reached from this process."""
