"""On which node a request goes: the fullest that fits, so that whole nodes stay free."""

from __future__ import annotations

from collections.abc import Mapping

from gpudev.domain.names import NodeName


def choose_node(free_slots: Mapping[NodeName, int], wanted: int) -> NodeName | None:
    """The node with the least free room that still fits; the name breaks ties, so equal inputs agree."""
    fitting = [(free, name) for name, free in free_slots.items() if free >= wanted]
    return min(fitting)[1] if fitting else None
