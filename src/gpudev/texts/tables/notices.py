"""What the people on a dev server are told: in files of their home, on terminals and in events."""

from __future__ import annotations

from gpudev.texts.template import Text, Values


def _say_leaving(values: Values) -> str:
    nodes = "Node {nodes} is" if len(values["nodes"]) == 1 else "Nodes {nodes} are"
    reasons = "; ".join(values["reasons"])
    why = f": {reasons}" if reasons else ""
    return (
        values.fill(f"{nodes} being taken out of service")
        + f"{why}. "
        + values.fill(
            "Reservation {name} ({reservation:short}) runs on until {end:second} and cannot be extended. "
            "Save your work before: only what is on a disk is kept."
        )
    )


def _say_staying(values: Values) -> str:
    nodes = "Node {nodes} stays" if len(values["nodes"]) == 1 else "Nodes {nodes} stay"
    return values.fill(
        f"{nodes} in service after all. Reservation {{name}} ({{reservation:short}}) can be extended again."
    )


def _say_memory(values: Values) -> str:
    times = "once" if values["count"] == 1 else "{count} times"
    return values.fill(
        f"Something on this server was ended for want of memory, {times} so far, last at {{at:second}}."
    )


_ENDS = "Reservation {name} ({reservation:short}) ends in {minutes} minutes, at {end:second}. "

TEXTS = {
    # The command is one that clients of version 0.3 know as well as ours.
    "ends_soon": Text(_ENDS + "For more time: gpu-dev edit {reservation:short} --extend HOURS"),
    "ends_soon_with_its_node": Text(
        _ENDS + "Its node is being taken out of service, so it cannot be extended."
    ),
    "idle_warning": Text(
        "Nobody uses reservation {name} ({reservation:short}): {signals}. It ends at {end:second} unless it "
        "is used again. To keep it: gpu-dev keep {reservation:short} 2h --reason WHY"
    ),
    "node_leaves": Text(_say_leaving),
    "node_stays": Text(_say_staying),
    "out_of_memory": Text(_say_memory),
}
