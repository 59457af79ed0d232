"""The HTTP service: routes, the translation between rules and wire, and one table of errors."""

from __future__ import annotations

from gpudev.api.wire_schema import describe_wire

# Before any route is made, since that is when FastAPI reads the types of its bodies.
describe_wire()
