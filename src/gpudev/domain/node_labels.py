"""Labels of nodes that a request may ask for: those on the operator's list, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpudev.domain.catalogue import in_words
from gpudev.domain.errors import Invalid

Labels = Mapping[str, str]


def check_labels(asked: Labels, offered: Mapping[str, Iterable[str]]) -> dict[str, str]:
    for name, value in asked.items():
        choices = in_words(_list_choices({name: offered[name]} if name in offered else offered))
        hint = f"Choose from {choices}." if offered else "Leave out --node-label."
        if name not in offered:
            raise Invalid(
                f'Nodes cannot be chosen by the label "{name}" here.', hint=hint, code="unknown_node_label"
            )
        if value not in offered[name]:
            raise Invalid(
                f'The label "{name}" is not "{value}" on any node that can be asked for.',
                hint=hint,
                code="unknown_node_label",
            )
    return dict(asked)


def has_labels(labels: Labels, wanted: Labels) -> bool:
    return all(labels.get(name) == value for name, value in wanted.items())


def in_short(labels: Labels) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(labels.items()))


def _list_choices(offered: Mapping[str, Iterable[str]]) -> list[str]:
    return [f"{name}={value}" for name, values in sorted(offered.items()) for value in sorted(values)]
