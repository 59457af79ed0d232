"""OpenTofu on a copy of `deploy/`, with stand-ins for the providers, which know all arguments."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.infra.bindings import Bindings
from tests.support.infra.programs import get_schema_provider, get_tofu

DEPLOY = Path(__file__).parents[3] / "deploy"
PROVIDERS = {
    # Each with the version of the provider that its bindings were made from.
    "aws": (Bindings("aws", "21.22.1"), "6.25.0"),
    "helm": (Bindings("helm", "12.1.2"), "3.1.1"),
    "kubernetes": (Bindings("kubernetes", "12.1.1"), "2.38.0"),
    "tls": (Bindings("tls", "11.0.1"), "4.1.0"),
}
_NOTHING_BUT_PROVIDERS = Path(__file__).with_name("sources") / "nothing-but-providers"
_RESOURCE = re.compile(r'^(?:resource|data) "(\w+)"', re.MULTILINE)
_NEEDED = re.compile(r"provider\[(?P<host>[^/\]]+)/(?P<space>[^/\]]+)/(?P<name>[^/\]]+)\]")


class TofuRefused(Exception):
    """OpenTofu's own words on what is wrong."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A copy of the deployment in which OpenTofu may leave its files."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "deploy" / "tofu"

    def run(self, *arguments: str, root: Path | None = None) -> str:
        done = subprocess.run(
            [get_tofu(), f"-chdir={root or self.root}", *arguments],
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise TofuRefused(done.stderr + done.stdout)
        return done.stdout

    def init(self) -> str:
        """`tofu init`, with the stand-ins as a mirror of the providers."""
        found = _NEEDED.search(self.run("providers", "-no-color", root=_NOTHING_BUT_PROVIDERS))
        if found is None:
            raise LookupError("OpenTofu does not say where it looks for providers.")
        for name in PROVIDERS:
            self._stand_in(self.mirror / found["host"] / found["space"] / name, name)
        return self.run("init", "-backend=false", "-no-color", "-input=false")

    def _stand_in(self, place: Path, name: str) -> None:
        bindings, version = PROVIDERS[name]
        folder = place / version / "linux_amd64"
        folder.mkdir(parents=True)
        program = folder / f"terraform-provider-{name}_v{version}"
        shutil.copy(get_schema_provider(), program)
        schema = json.loads(bindings.get_schema().read_text(encoding="utf-8"))
        # OpenTofu asks for the whole of it at every step, and there are two thousand resources.
        used = set(_RESOURCE.findall(self._text()))
        for part in ("resources", "data_sources"):
            schema[part] = {name: block for name, block in schema[part].items() if name in used}
        Path(f"{program}.json").write_text(json.dumps(schema), encoding="utf-8")

    def _text(self) -> str:
        return "\n".join(file.read_text(encoding="utf-8") for file in sorted(self.root.rglob("*.tf")))

    @property
    def mirror(self) -> Path:
        return self.folder / "mirror"

    def _environment(self) -> dict[str, str]:
        settings = self.folder / "tofu.rc"
        mirror = f'provider_installation {{\n  filesystem_mirror {{\n    path = "{self.mirror}"\n  }}\n}}\n'
        settings.write_text(mirror, encoding="utf-8")
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "TF_CLI_CONFIG_FILE": str(settings)}


def copy_deployment(folder: Path) -> Checkout:
    kept = shutil.ignore_patterns(".terraform", "*.tfstate*", ".terraform.lock.hcl")
    shutil.copytree(DEPLOY, folder / "deploy", symlinks=False, ignore=kept)
    (folder / "mirror").mkdir()
    return Checkout(folder)
