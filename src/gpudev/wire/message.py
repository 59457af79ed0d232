"""The decorator of all that goes over the wire: frozen values with named fields, cheap to define.

For each class `dataclasses` writes the source of its methods and compiles it. There are some sixty classes
here, and a command like `gpu-dev list` uses three of them: to define them took longer than all else that it
does. The methods below are the same for every class, so nothing is compiled. Otherwise these are dataclasses
like others: `fields`, `replace` and type checkers know them.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def message(kind: type[T]) -> type[T]:
    made = dataclass(init=False, repr=False, eq=False, kw_only=True)(kind)
    made.__init__ = _make  # type: ignore[method-assign]  # as `dataclass` does, which mypy knows
    made.__eq__ = _equals  # type: ignore[method-assign]  # the same
    made.__hash__ = None  # type: ignore[assignment]  # most hold lists
    made.__repr__ = _describe  # type: ignore[method-assign]  # the same
    made.__setattr__ = _refuse  # type: ignore[method-assign]  # the same
    made.__delattr__ = _refuse  # type: ignore[method-assign]  # the same
    return made


def _make(self: Any, **given: Any) -> None:
    defaults, factories, names = _PLANS.get(type(self)) or _plan(type(self))
    content = self.__dict__
    content.update(defaults)
    for name in factories.keys() - given.keys():
        content[name] = factories[name]()
    content.update(given)
    if content.keys() != names:
        _complain(type(self), content.keys() - names, names - content.keys())


def _equals(self: Any, other: Any) -> Any:
    return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented


def _describe(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self))
    return f"{type(self).__name__}({shown})"


def _refuse(self: Any, name: str, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed.")


def _complain(kind: type, unknown: set[str], missing: set[str]) -> NoReturn:
    words = [
        *(f"does not know {name}" for name in sorted(unknown)),
        *(f"needs {name}" for name in sorted(missing)),
    ]
    raise TypeError(f"{kind.__name__} {', '.join(words)}")


_Plan = tuple[dict[str, Any], dict[str, Any], frozenset[str]]
_PLANS: dict[type, _Plan] = {}
"""Of each class that was ever made: its defaults, what makes defaults, and the names of all fields."""


def _plan(kind: type) -> _Plan:
    known = fields(kind)
    plan = _PLANS[kind] = (
        {each.name: each.default for each in known if each.default is not MISSING},
        {each.name: each.default_factory for each in known if each.default_factory is not MISSING},
        frozenset(each.name for each in known),
    )
    return plan
