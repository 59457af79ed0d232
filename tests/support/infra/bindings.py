"""The schemas of providers, read from the bindings that are generated from them.

A provider itself cannot be had from a package registry. Its bindings for Python can, and the assembly in them
names every resource with its arguments, blocks, types, and what is required. That is what `tofu validate`
asks a provider for. What a provider checks beyond it (values, conflicts) is not there.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.kubernetes.cache import cache_folder, unfinished
from tests.support.kubernetes.progress import step

Json = dict[str, Any]
_PRIMITIVES = {"string": "string", "number": "number", "boolean": "bool", "any": "dynamic", "json": "dynamic"}
_MAPS = {"cdktf.StringMap": "string", "cdktf.BooleanMap": "bool", "cdktf.NumberMap": "number"}
_ARGUMENT = re.compile(r"\{@link \S+#(\w+) ")
_RESOURCE = re.compile(r"\{@link \S+ (\w+)\}")
_BORROWED = {"alias", "connection", "count", "dependsOn", "forEach", "lifecycle", "provider", "provisioners"}
"""Every resource has these; they belong to the language and not to the provider."""


@dataclass(frozen=True, slots=True)
class Bindings:
    """The wheel of one provider."""

    provider: str
    version: str

    @property
    def schema_file(self) -> Path:
        return cache_folder("infra") / f"schemas-{self.version}" / f"{self.provider}.json"

    def get_schema(self) -> Path:
        """A file with every resource, data source and the provider itself; made if it never was."""
        place = self.schema_file
        if not place.exists():
            with step(f"Reading the schema of provider {self.provider}"), unfinished(place) as file:
                assembly = json.loads(self._fetch_assembly(file.parent))
                file.write_text(json.dumps(Assembly(self.provider, assembly["types"]).schema()))
        return place

    def _fetch_assembly(self, folder: Path) -> bytes:
        wanted = f"cdktf-cdktf-provider-{self.provider}=={self.version}"
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", "--dest", str(folder), wanted], check=True)
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as outer:
            (package,) = (name for name in outer.namelist() if name.endswith(".jsii.tgz"))
            with outer.open(package) as stream, tarfile.open(fileobj=stream) as archive:
                assembly = archive.extractfile("package/.jsii")
                if assembly is None:
                    raise LookupError(f"{wheel.name} has no assembly.")
                return assembly.read()


@dataclass(frozen=True, slots=True)
class Assembly:
    """The types of the bindings, by their full names, and the schema in them."""

    provider: str
    types: Mapping[str, Json]

    def schema(self) -> Json:
        found: Json = {"address": f"hashicorp/{self.provider}", "resources": {}, "data_sources": {}}
        for name, each in self.types.items():
            kind = _kind_of(each)
            if kind is None:
                continue
            # Not always the same name with Config after it, but always the last thing that one is made of.
            block = self._block(each["initializer"]["parameters"][-1]["type"]["fqn"], name)
            if kind == "provider":
                found["provider"] = block
            else:
                found[kind][_resource_name(each)] = block
        return found

    def _block(self, arguments: str, results: str) -> Json:
        """What can be written into a block, and what can be read from it."""
        made: Json = {"attributes": {}, "blocks": {}}
        written = set()
        for each in self.types[arguments].get("properties", ()):
            if each["name"] in _BORROWED and not _ARGUMENT.search(_words(each)):
                continue
            name = _argument_name(each)
            written.add(each["name"])
            # A block that contains itself has no type in the bindings: whatever is written there is accepted.
            is_block = _is_block(each) and _struct(each["type"])[0] in self.types
            part = "blocks" if is_block else "attributes"
            made[part][name] = self._nested(each) if part == "blocks" else self._attribute(each)
        for each in self._results(results, written):
            made["attributes"][_snake(each["name"])] = {"type": self._type(each["type"]), "computed": True}
        return made

    def _results(self, name: str, written: set[str]) -> Iterator[Json]:
        for each in self.types.get(name, {}).get("properties", ()):
            is_ours = each.get("immutable") and not each.get("static")
            hidden = each["name"].endswith("Input") or each["name"] in {"internalValue", "fqn"}
            if is_ours and not hidden and each["name"] not in written:
                yield each

    def _nested(self, each: Json) -> Json:
        struct, is_list = _struct(each["type"])
        required = not each.get("optional")
        return {
            "block": self._block(struct, f"{struct}OutputReference"),
            "single": not is_list,
            "required": required,
        }

    def _attribute(self, each: Json) -> Json:
        required = not each.get("optional")
        made: Json = {"required": required, "optional": not required, "computed": not required}
        struct, is_list = _struct(each["type"])
        if struct in self.types:
            nested = self._block(struct, f"{struct}OutputReference")
            return {**made, "nested": nested, "nesting": "list" if is_list else "single"}
        return {**made, "type": self._type(each["type"])}

    def _type(self, given: Json) -> Any:
        """As OpenTofu writes types in JSON; what cannot be told may be anything."""
        if "primitive" in given:
            return _PRIMITIVES[given["primitive"]]
        if "collection" in given:
            kind = "list" if given["collection"]["kind"] == "array" else "map"
            return [kind, self._type(given["collection"]["elementtype"])]
        if "union" in given:
            return self._type(_without_tokens(given["union"]["types"])[0])
        if given["fqn"] in _MAPS:
            return ["map", _MAPS[given["fqn"]]]
        if given["fqn"] == "cdktf.IResolvable":
            return "bool"
        return self._object(given["fqn"])

    def _object(self, name: str) -> Any:
        element = name.removesuffix("List").removesuffix("Map").removesuffix("OutputReference")
        results = list(self._results(f"{element}OutputReference", set()))
        if not results:
            return "dynamic"
        made = ["object", {_snake(each["name"]): self._type(each["type"]) for each in results}]
        if name.endswith("List"):
            return ["list", made]
        return ["map", made] if name.endswith("Map") else made


def _kind_of(each: Json) -> str | None:
    base = each.get("base", "")
    kinds = {
        "TerraformResource": "resources",
        "TerraformDataSource": "data_sources",
        "TerraformProvider": "provider",
    }
    return kinds.get(base.removeprefix("cdktf."))


def _resource_name(each: Json) -> str:
    """From the sentence about it: the name of the class is not always the same."""
    found = _RESOURCE.search(_words(each))
    if found is None:
        raise LookupError(f"{each['fqn']} does not say what it is.")
    return found.group(1)


def _words(each: Json) -> str:
    docs = each.get("docs", {})
    return f"{docs.get('summary', '')} {docs.get('remarks', '')}"


def _argument_name(each: Json) -> str:
    found = _ARGUMENT.search(_words(each))
    return found.group(1) if found else _snake(each["name"])


def _is_block(each: Json) -> bool:
    return each.get("docs", {}).get("summary", "").endswith(" block.")


def _struct(given: Json) -> tuple[str, bool]:
    """The full name of the struct that is meant, empty if none is, and whether there may be several."""
    if "union" in given:
        return _struct(_without_tokens(given["union"]["types"])[0])
    if "collection" in given and given["collection"]["kind"] == "array":
        return _struct(given["collection"]["elementtype"])[0], True
    return given.get("fqn", ""), False


def _without_tokens(types: list[Json]) -> list[Json]:
    return [each for each in types if each.get("fqn") != "cdktf.IResolvable"]


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
