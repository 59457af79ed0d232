"""Benchmarks: one module each, run by `python -m bench`, results in `docs/reference/benchmarks.md`.

They compare with something measured in the same run, in turns with it, since a number of seconds says more
about a machine and its other users than about the product.
"""
