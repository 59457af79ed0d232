"""Labels of nodes that a request may ask for: those on the operator's list, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpudev.domain.errors import Invalid

Labels = Mapping[str, str]


def check_labels(asked: Labels, offered: Mapping[str, Iterable[str]]) -> dict[str, str]:
    for name, value in asked.items():
        if name not in offered:
            raise Invalid(
                "unknown_node_label", name=name, choices=_list_choices(offered), code="unknown_node_label"
            )
        if value not in offered[name]:
            raise Invalid(
                "unknown_node_label_value",
                name=name,
                value=value,
                choices=_list_choices({name: offered[name]}),
                code="unknown_node_label",
            )
    return dict(asked)


def has_labels(labels: Labels, wanted: Labels) -> bool:
    return all(labels.get(name) == value for name, value in wanted.items())


def in_short(labels: Labels) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(labels.items()))


def _list_choices(offered: Mapping[str, Iterable[str]]) -> list[str]:
    return [f"{name}={value}" for name, values in sorted(offered.items()) for value in sorted(values)]
