"""One command a module, each with an attribute `command`, imported only when it is used."""
