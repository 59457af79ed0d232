"""The catalogue of GPU types as OpenTofu reads it: generated, so that there is one table and not two."""

from __future__ import annotations

import json
from pathlib import Path

from gpudev.domain.catalogue import DEFAULT_CATALOGUE

TOFU = Path(__file__).parents[3] / "deploy" / "tofu"
CATALOGUE_FILE = TOFU / "catalogue.tf.json"


def write_catalogue() -> str:
    """The text of `catalogue.tf.json`."""
    types = {
        gpu_type.name: {
            "instance_type": gpu_type.instance_type,
            "gpus_per_node": gpu_type.gpus_per_node,
            "efa_interfaces": gpu_type.efa_interfaces,
            "architecture": gpu_type.architecture,
        }
        for gpu_type in DEFAULT_CATALOGUE.types
    }
    comment = "Made from src/gpudev/domain/catalogue.py by UPDATE_GOLDEN=1 make test-infra"
    return json.dumps({"//": comment, "locals": {"catalogue": types}}, indent=2) + "\n"
