"""The HTTP contract as frozen dataclasses, shared by server and client. Standard library only."""
