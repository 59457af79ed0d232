"""gpu-dev lends GPU machines to the developers of a team."""

__version__ = "0.4.0"
