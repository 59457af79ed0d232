"""What `gpu-dev doctor` found, a line each, with the fix below what is not in order."""

from __future__ import annotations

from collections.abc import Sequence

from gpudev.cli.checkup import Finding, State

_NAME_WIDTH = 11
_STATE_WIDTH = max(len(state) for state in State)


def format_finding(finding: Finding) -> str:
    line = f"{finding.state:{_STATE_WIDTH}}  {finding.name:{_NAME_WIDTH}}  {finding.words}"
    if finding.state is State.GOOD or not finding.fix:
        return line
    return f"{line}\n{' ' * (_STATE_WIDTH + _NAME_WIDTH + 4)}{finding.fix}"


def encode_findings(findings: Sequence[Finding]) -> list[dict[str, str]]:
    words = {State.GOOD: "ok", State.DOUBTFUL: "note", State.BAD: "fail"}
    return [
        {"name": each.name, "state": words[each.state], "message": each.words, "fix": each.fix}
        for each in findings
    ]
