"""The command `gpu-dev`: a thin shell over the client. Data goes to stdout, everything else to stderr."""
