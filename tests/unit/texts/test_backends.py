"""Sentences about backends that depend on what is known: each of their forms."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import advise, say

NOON = datetime(2030, 1, 7, 12, 0, tzinfo=UTC)
HARD = "a {b}"
"""What a program said is not a template."""


@pytest.mark.parametrize(
    "told, sentence",
    [
        (
            fact("cluster_of_another_process", what=""),
            "The cluster is in the hands of another process.",
        ),
        (
            fact("cluster_object_of_another", kind="pods", name="x", owner="r1", id="r2"),
            "The pods entry x belongs to reservation r1, not to r2.",
        ),
        (
            fact("cluster_object_of_another", kind="pods", name="x", owner=None, id="r2"),
            "The pods entry x is not ours, not to r2.",
        ),
        (
            fact("scheduler_found_no_room", node=HARD, words=HARD),
            "The scheduler found no room on a {b}: a {b}.",
        ),
        (
            fact("scheduler_found_no_room", node="", words="full"),
            "The scheduler found no room on its node: full.",
        ),
        (fact("pod_ended", words=""), "The pod ended: The cluster gives no reason."),
        (fact("pod_ended", words=HARD), "The pod ended: a {b}."),
        (
            fact("container_ended", how=fact("ended_with_code", code=3, words="")),
            "The dev server ended with code 3.",
        ),
        (
            fact("container_restarted_at", how=fact("ended_with_code", code=3, words=HARD), at=NOON),
            (
                "The dev server ended with code 3: a {b} at 12:00 UTC. "
                "It was started again; what ran in it is gone."
            ),
        ),
        (
            fact("node_silent", node="a", since=NOON, answers=True),
            "The node a has not reported to the cluster since 12:00 UTC; SSH still answers.",
        ),
        (
            fact("node_silent", node="a", since=None, answers=False),
            "The node a has not reported to the cluster; SSH does not answer.",
        ),
        (fact("sts_answers_with_status", status=500, problem=""), "it answers with status 500"),
        (fact("sts_answers_with_status", status=400, problem="X"), "it answers with status 400 X"),
        (fact("sts_refused", problem=""), "AWS does not accept it: no reason given."),
        (
            fact("postgres_failed", path="/x", what=fact("postgres_ended", status=1), words="", log="/l"),
            "PostgreSQL in /x ended with 1: it left no message",
        ),
        (
            fact("control_plane_runs", api_url="", path="/s"),
            "gpu-dev runs already, with its state in /s.",
        ),
        (
            fact("control_plane_runs", api_url="http://x", path="/s"),
            "gpu-dev runs already at http://x, with its state in /s.",
        ),
        (
            fact("program_not_started_with_log", program="API", words="", log="/l"),
            "The API did not start: it left no word",
        ),
        (
            fact("program_not_started_with_log", program="API", words=HARD, log="/l"),
            "The API did not start: a {b}",
        ),
        (
            fact("processes_do_not_end", pids=[7, 9]),
            "Processes [7, 9] do not end, although they were killed.",
        ),
        (fact("greeting_length", length=timedelta(hours=26)), "  Length     26 h from its start"),
        (fact("greeting_length", length=timedelta(minutes=95)), "  Length     1 h 35 min from its start"),
    ],
    ids=lambda value: value.key if isinstance(value, Fact) else "",
)
def test_sentence_has_the_form_for_what_is_known(told: Fact, sentence: str) -> None:
    assert say(told) == sentence


@pytest.mark.parametrize(
    "told, hint",
    [
        (fact("aws_refused", aws_code="VolumeInUse", what="x", words=""), "detach the volume."),
        (fact("aws_refused", aws_code="Odd", what="x", words=""), "look up what AWS means by Odd."),
        (
            fact("sts_address_unknown", endpoint=""),
            "Sign for https://sts.amazonaws.com or https://sts.REGION.amazonaws.com.",
        ),
        (fact("sts_address_unknown", endpoint="http://sts"), "Sign for http://sts."),
        (
            fact("fleet_labels_wrong", path="/f", number=1, value="3"),
            'Use for example { nsight = "true" }.',
        ),
    ],
    ids=lambda value: value.key if isinstance(value, Fact) else "",
)
def test_hint_has_the_form_for_what_is_known(told: Fact, hint: str) -> None:
    assert advise(told) == hint
