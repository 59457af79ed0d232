"""Words that are data themselves: what the cluster or an older version of gpu-dev said."""

from __future__ import annotations

from gpudev.texts.template import Text

TEXTS = {
    "words": Text("{words}"),
    "sentences": Text(lambda values: " ".join(map(values.show, values["parts"]))),
}
