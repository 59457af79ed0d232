"""The Helm chart as Helm renders it: Kubernetes objects, and the questions that tests ask of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.support.infra.programs import get_helm

CHART = Path(__file__).parents[3] / "deploy" / "helm" / "gpu-dev"
NAMESPACE = "gpu-controlplane"
VALUES = ("aws", "generic", "kind")
EXTERNAL_DATABASE = ("postgres.enabled=false", "externalDatabase.secret=database")

Manifest = dict[str, Any]


class HelmRefused(Exception):
    """Helm's own words on why there is nothing."""


@dataclass(frozen=True, slots=True)
class Pod:
    """The pod that a workload makes."""

    owner: str
    """`Deployment/api-service`, say."""
    labels: dict[str, str]
    spec: Manifest

    @property
    def containers(self) -> tuple[Manifest, ...]:
        return (*self.spec.get("initContainers", ()), *self.spec["containers"])


@dataclass(frozen=True)
class Rendering:
    text: str
    objects: tuple[Manifest, ...]

    def get(self, kind: str, name: str, namespace: str | None = None) -> Manifest:
        found = [
            one
            for one in self.of_kind(kind)
            if one["metadata"]["name"] == name and namespace in (None, one["metadata"].get("namespace"))
        ]
        if len(found) != 1:
            raise LookupError(f"{len(found)} objects are {kind} {name}")
        return found[0]

    def of_kind(self, *kinds: str) -> tuple[Manifest, ...]:
        return tuple(one for one in self.objects if one["kind"] in kinds)

    @property
    def pods(self) -> tuple[Pod, ...]:
        return tuple(_list_pods(self.objects))


@cache
def render(values: str = "", settings: tuple[str, ...] = (), *flags: str) -> Rendering:
    """What `helm install` would make of a file in `values/` and of `--set` settings."""
    arguments = ["template", "gpu-dev", str(CHART), "--namespace", NAMESPACE, *flags]
    text = run_helm(*arguments, *chosen(values, settings))
    return Rendering(text, tuple(one for one in yaml.safe_load_all(text) if one))


def chosen(values: str, settings: tuple[str, ...] = ()) -> list[str]:
    files = ["--values", str(CHART / "values" / f"{values}.yaml")] if values else []
    return files + [word for setting in settings for word in ("--set", setting)]


def run_helm(*arguments: str) -> str:
    done = subprocess.run([get_helm(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise HelmRefused(done.stderr + done.stdout)
    return done.stdout


def selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


def _list_pods(objects: tuple[Manifest, ...]) -> Iterator[Pod]:
    for one in objects:
        spec = one.get("spec", {})
        template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
        if template is not None:
            owner = f"{one['kind']}/{one['metadata']['name']}"
            yield Pod(owner, template["metadata"]["labels"], template["spec"])
