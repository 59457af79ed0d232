"""An OCI image archive, as `ctr images import` reads it."""

from __future__ import annotations

import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"


@dataclass(frozen=True, slots=True)
class ImageConfig:
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    stop_signal: str = field(default="SIGTERM", repr=False)


@dataclass(frozen=True, slots=True)
class _Blob:
    """A piece of content, and how others refer to it."""

    media_type: str
    digest: str
    size: int

    def reference(self, **more: Any) -> dict[str, Any]:
        return {"mediaType": self.media_type, "digest": f"sha256:{self.digest}", "size": self.size, **more}


def write_archive(archive: Path, images: Mapping[str, ImageConfig], *layers: Path) -> None:
    """Write images by their names, all of the same layers: uncompressed tars, the lowest first."""
    with tarfile.open(archive, "w") as tar:
        contents = [_add_file(tar, layer) for layer in layers]
        manifests = [_add_image(tar, name, config, contents) for name, config in images.items()]
        _add_json(tar, "index.json", {"schemaVersion": 2, "manifests": manifests})
        _add_json(tar, "oci-layout", {"imageLayoutVersion": "1.0.0"})


def _add_image(
    tar: tarfile.TarFile, name: str, config: ImageConfig, contents: Sequence[_Blob]
) -> dict[str, Any]:
    settings = _add_document(tar, _CONFIG, _image_config(config, contents))
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": settings.reference(),
        "layers": [content.reference() for content in contents],
    }
    naming = {
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name.rpartition(":")[2],
    }
    return _add_document(tar, _MANIFEST, manifest).reference(annotations=naming)


def _image_config(config: ImageConfig, layers: Sequence[_Blob]) -> dict[str, Any]:
    return {
        "architecture": _ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "Entrypoint": list(config.entrypoint),
            "Cmd": list(config.command),
            "StopSignal": config.stop_signal,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.digest}" for layer in layers]},
    }


def _add_file(tar: tarfile.TarFile, path: Path) -> _Blob:
    with path.open("rb") as stream:
        digest = file_digest(stream, "sha256").hexdigest()
    tar.add(path, f"blobs/sha256/{digest}")
    return _Blob(_LAYER, digest, path.stat().st_size)


def _add_document(tar: tarfile.TarFile, media_type: str, document: dict[str, Any]) -> _Blob:
    text = json.dumps(document).encode()
    digest = sha256(text).hexdigest()
    _add_json(tar, f"blobs/sha256/{digest}", document)
    return _Blob(media_type, digest, len(text))


def _add_json(tar: tarfile.TarFile, name: str, document: dict[str, Any]) -> None:
    text = json.dumps(document).encode()
    entry = tarfile.TarInfo(name)
    entry.size = len(text)
    tar.addfile(entry, io.BytesIO(text))
