"""The rules of lending GPUs, as values and pure functions: no I/O, no clock, no randomness, no logging."""
