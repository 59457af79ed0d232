"""Parts of paths that a name cannot be: a path that is written out comes before one with a parameter.

OpenAPI says so, and without it `GET /v1/jobs/submit` would look for a reservation of that name.
"""

from __future__ import annotations

from starlette.convertors import StringConvertor, register_url_convertor

from gpudev.domain.names import RESERVED_NAMES


class JobSegment(StringConvertor):
    regex = f"(?!(?:{'|'.join(sorted(RESERVED_NAMES))})$)[^/]+"


class KeySegment(StringConvertor):
    regex = "(?!rotate$)[^/]+"


register_url_convertor("job", JobSegment())
register_url_convertor("key", KeySegment())
