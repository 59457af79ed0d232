"""The cluster: its API, its nodes and pods, and why a dev server does not start there."""

from __future__ import annotations

from gpudev.texts.template import Text, Values


def _say_whose_cluster(values: Values) -> str:
    return values.fill("The cluster is in the hands of another process. {what}").strip()


TEXTS = {
    "cluster_of_another_process": Text(_say_whose_cluster, hint="The controller does the rest."),
}
