"""The typed client of the HTTP API. Standard library and `gpudev.wire` only, so that it starts fast."""
