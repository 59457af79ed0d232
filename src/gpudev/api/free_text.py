"""What `wire.text` says of values, made known to pydantic: the check of a request, and its JSON Schema."""

from __future__ import annotations

from typing import Any

from pydantic import AfterValidator, GetCoreSchemaHandler, GetJsonSchemaHandler

from gpudev.wire.text import HIDDEN, LINE_BREAKS, Exact, Text, Within, Word

_LAST_CONTROL = 0x1F
_LAST_OF_PLANE_0 = 0xFFFF
_SURROGATES = (0xD800, 0xDFFF)


class BadText(ValueError):
    """A text that is too long or has hidden characters. The text itself is not repeated anywhere."""

    def __init__(self, rule: Text) -> None:
        super().__init__(f"must be {rule.rule}")
        self.rule = rule


def teach_pydantic() -> None:
    Text.__get_pydantic_core_schema__ = _check  # type: ignore[attr-defined]  # pydantic looks for it
    Text.__get_pydantic_json_schema__ = _describe  # type: ignore[attr-defined]  # the same
    Exact.__get_pydantic_core_schema__ = _check_exactly  # type: ignore[attr-defined]  # the same
    Within.__get_pydantic_json_schema__ = _describe_range  # type: ignore[attr-defined]  # the same
    Word.__get_pydantic_json_schema__ = _describe_words  # type: ignore[attr-defined]  # the same


def _check(rule: Text, source: Any, handler: GetCoreSchemaHandler) -> Any:
    def check(text: str) -> str:
        if not rule.accepts(text):
            raise BadText(rule)
        return text

    return AfterValidator(check).__get_pydantic_core_schema__(source, handler)


def _check_exactly(_rule: Exact, source: Any, handler: GetCoreSchemaHandler) -> Any:
    return {**handler(source), "strict": True}


def _describe(rule: Text, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
    pattern = rule.pattern or _pattern(has_lines=rule.has_lines)
    return {**handler(schema), "maxLength": rule.longest, "pattern": pattern}


def _describe_range(rule: Within, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
    lower = "exclusiveMinimum" if rule.without_first else "minimum"
    return {**handler(schema), lower: rule.first, "maximum": rule.last}


def _describe_words(rule: Word, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
    return {**handler(schema), "enum": [str(word) for word in rule.words]}


def _pattern(*, has_lines: bool) -> str:
    """As all readers of JSON Schema understand it: some take what is beyond plane 0 for two characters."""
    allowed = {ord(character) for character in LINE_BREAKS} if has_lines else set()
    controls = [(code, code) for code in range(_LAST_CONTROL + 1) if code not in allowed]
    in_plane_0 = [
        pair for pair in HIDDEN if _LAST_CONTROL < pair[1] <= _LAST_OF_PLANE_0 and pair != _SURROGATES
    ]
    refused = "".join(f"\\u{first:04x}-\\u{last:04x}" for first, last in (*controls, *in_plane_0))
    return f"^[^{refused}]*$"
