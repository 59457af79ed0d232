"""Values in, text out: what the commands print. No I/O, no clock, no terminal."""
