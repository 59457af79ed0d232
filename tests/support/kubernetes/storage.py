"""The storage of a cluster: the classes of disks, and the program that makes what they ask for."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.kubernetes.access import Access
from tests.support.kubernetes.processes import Process

CLASS = "disks"
CLASS_AT_ONCE = "disks-at-once"
DELETING_CLASS = "disks-deleted-with-their-claims"
SNAPSHOT_CLASS = "disks"
_MANIFESTS = Path(__file__).with_name("storage.yaml")
_DEFINITIONS = ("volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses")
_REPOSITORY = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Storage:
    folder: Path
    kubeconfig: Path
    processes: Path

    @property
    def process(self) -> Process:
        return Process("storage", self.processes)

    def start(self, access: Access) -> None:
        """If it does not run yet."""
        if self.process.find() is not None:
            return
        definitions, classes = _split()
        access.kubectl("apply", "--filename=-", stdin=definitions)
        for plural in _DEFINITIONS:
            access.wait(f"crd/{plural}.snapshot.storage.k8s.io", "condition=Established")
        access.kubectl("apply", "--filename=-", stdin=classes)
        program = [sys.executable, "-m", "tests.support.kubernetes.provisioner"]
        self.process.start(
            [*program, str(self.kubeconfig), str(self.folder)], environment={"PYTHONPATH": str(_REPOSITORY)}
        )

    def stop(self) -> None:
        self.process.stop()


def _split() -> tuple[str, str]:
    """What has to be there before the rest can be understood, and the rest."""
    parts = _MANIFESTS.read_text().split("---\n")
    definitions = [part for part in parts if "CustomResourceDefinition" in part]
    return "---\n".join(definitions), "---\n".join(part for part in parts if part not in definitions)
