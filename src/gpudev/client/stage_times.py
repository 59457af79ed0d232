"""How long each stage of a start took here before, so that the next wait can be told what is usual.

Kept in one small file by the address of the server: the newest durations of each stage. What is usual is
their median. It is a comfort and nothing depends on it: the file may be deleted at any time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from gpudev.client.files import read_json_object, write_private

KEPT = 20
"""So many durations of each stage: enough for a median, few enough to follow a change."""


@dataclass(frozen=True, slots=True)
class StageTimes:
    path: Path
    api_url: str

    def find_usual(self, stage: str) -> float | None:
        """In seconds; None if the stage was never seen."""
        seen = _read_seconds(self._read().get(stage))
        return median(seen) if seen else None

    def remember(self, durations: dict[str, float]) -> None:
        if not durations:
            return
        stages = self._read()
        for stage, seconds in durations.items():
            stages[stage] = [*_read_seconds(stages.get(stage)), round(seconds, 2)][-KEPT:]
        content = {**read_json_object(self.path), self.api_url: stages}
        write_private(self.path, json.dumps(content) + "\n")

    def _read(self) -> dict[str, Any]:
        stages = read_json_object(self.path).get(self.api_url)
        return stages if isinstance(stages, dict) else {}


def _read_seconds(kept: object) -> list[float]:
    return [float(each) for each in kept if isinstance(each, (int, float))] if isinstance(kept, list) else []
