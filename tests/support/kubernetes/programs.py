"""The programs that are compiled here from Go modules, once: Kubernetes, what goes with it and tiny ones.

The versions are pinned in this file and nowhere else. Each module gets a folder in the cache with a go.mod
that is written here; the first build of all takes about ten minutes on two cores.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.kubernetes.cache import cache_folder, unfinished
from tests.support.kubernetes.processes import ClusterFailed
from tests.support.kubernetes.progress import step

KUBERNETES = "1.36.4"
KWOK = "0.8.0"
COREDNS = "1.15.0"
KUBE_ROUTER = "1.5.1"
_GO = "1.26.0"

_SOURCES = Path(__file__).with_name("sources")
_STAGING = (
    "api",
    "apiextensions-apiserver",
    "apimachinery",
    "apiserver",
    "cli-runtime",
    "client-go",
    "cloud-provider",
    "cluster-bootstrap",
    "code-generator",
    "component-base",
    "component-helpers",
    "controller-manager",
    "cri-api",
    "cri-client",
    "cri-streaming",
    "csi-translation-lib",
    "dynamic-resource-allocation",
    "endpointslice",
    "externaljwt",
    "kms",
    "kube-aggregator",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
    "metrics",
    "mount-utils",
    "pod-security-admission",
    "sample-apiserver",
    "sample-cli-plugin",
    "sample-controller",
    "streaming",
)
"""Parts of Kubernetes that its own go.mod takes from folders beside it; they are released as modules, too."""

_CLIENT = ("api", "apimachinery", "client-go")
"""Those of them by which a program asks the API server."""


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    package: str
    """What is compiled: a package of the module, or `.` for the source beside this file."""


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module at one version, and what is compiled from it."""

    name: str
    path: str | None
    """None: only the standard library is needed."""
    version: str
    programs: tuple[Program, ...]
    replacements: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    go: str = _GO
    """The oldest Go that compiles it."""
    cache: str = "kubernetes"
    """The part of the cache that it is kept in."""
    sources: Path = _SOURCES
    """Where the sources of our own programs lie."""

    @property
    def folder(self) -> Path:
        return cache_folder(self.cache) / f"{self.name}-{self.version}"

    def go_mod(self) -> str:
        required = (f"require {self.path} v{self.version}",) if self.path else ()
        return "\n".join(
            [f"module gpu-dev.test/{self.name}", f"go {self.go}", *required, *self.replacements, ""]
        )


def _kubernetes() -> Module:
    names = (
        "kubectl",
        "kube-scheduler",
        "kube-proxy",
        "kube-controller-manager",
        "kubelet",
        "kube-apiserver",
    )
    minor = KUBERNETES.partition(".")[2]
    return Module(
        "kubernetes",
        "k8s.io/kubernetes",
        KUBERNETES,
        (
            *(Program(name, f"k8s.io/kubernetes/cmd/{name}") for name in names),
            # At the version that Kubernetes is tested with. Debian's is older, and with that the API server
            # refuses to stream lists.
            Program("etcd", "go.etcd.io/etcd/server/v3"),
        ),
        tuple(f"replace k8s.io/{name} => k8s.io/{name} v0.{minor}" for name in _STAGING),
        # The programs compare the versions that they report.
        (
            f"-X k8s.io/component-base/version.gitVersion=v{KUBERNETES}",
            f"-X k8s.io/client-go/pkg/version.gitVersion=v{KUBERNETES}",
        ),
    )


def _network_policies() -> Module:
    minor = KUBERNETES.partition(".")[2]
    return Module(
        "network-policies",
        "github.com/cloudnativelabs/kube-router",
        KUBE_ROUTER,
        (Program("network-policies", "."),),
        # Those of Kubernetes, which are compiled already.
        tuple(f"replace k8s.io/{name} => k8s.io/{name} v0.{minor}" for name in _CLIENT),
    )


MODULES = (
    Module("pause", None, "1", (Program("pause", "."),)),
    Module("exit", None, "1", (Program("exit", "."),)),
    _kubernetes(),
    Module("kwok", "sigs.k8s.io/kwok", KWOK, (Program("kwok", "sigs.k8s.io/kwok/cmd/kwok"),)),
    Module("coredns", "github.com/coredns/coredns", COREDNS, (Program("coredns", "."),)),
    _network_policies(),
)


def build_programs() -> None:
    """Compile what is not in the cache."""
    for module in MODULES:
        for program in module.programs:
            built(module, program)


def get_program(name: str) -> str:
    """The path of a program, which is compiled now if it never was."""
    for module in MODULES:
        for program in module.programs:
            if program.name == name:
                return str(built(module, program))
    raise LookupError(f"No module has a program {name}")


def built(module: Module, program: Program) -> Path:
    """Where the program is, once it is there."""
    place = module.folder / program.name
    if not place.exists():
        _build(module, program, place)
    return place


def _build(module: Module, program: Program, place: Path) -> None:
    if not shutil.which("go"):
        raise ClusterFailed(f"{program.name} is compiled by Go {module.go} or newer, and there is no `go`.")
    flags = " ".join(["-s", "-w", *module.link_flags])
    with step(f"Compiling {program.name} {module.version}"), unfinished(place) as binary:
        source = binary.with_suffix(".source")
        source.mkdir()
        (source / "go.mod").write_text(module.go_mod())
        if program.package == ".":
            shutil.copy(module.sources / program.name / "main.go", source)
        subprocess.run(
            [
                *("go", "build", "-mod=mod", "-trimpath", "-buildvcs=false"),
                *("-ldflags", flags, "-o", str(binary), program.package),
            ],
            cwd=source,
            env={**os.environ, "CGO_ENABLED": "0"},
            check=True,
        )
