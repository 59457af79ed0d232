"""What happens to reservations: the details of their states and the events of their history."""

from __future__ import annotations

from gpudev.texts.template import Text, Values


def _say_request(values: Values) -> str:
    where = " on {node_count} nodes" if values["node_count"] > 1 else ""
    when = " for {start_at:time}" if values["start_at"] else ""
    return values.fill(f"Asked for {{gpu_count}} {{gpu_type}} GPU{{gpu_count:plural}}{where}{when}.")


def _say_missing_members(values: Values) -> str:
    return f"Gone: {', '.join(f'{name} on {node}' for name, node in values['members'])}."


def _say_kept(values: Values) -> str:
    why = " {reason}" if values["reason"] else ""
    return values.fill(f"Kept until {{until:second}}, whether it is used or not.{why}")


def _say_stop(values: Values) -> str:
    return values.fill(f"The command was stopped{_code(values)}.")


def _say_timeout(values: Values) -> str:
    return values.fill(f"The command was stopped because the time was over{_code(values)}.")


def _code(values: Values) -> str:
    return "" if values["code"] is None else " (exit code {code})"


_SIGNALS = {
    "gpu_use": "GPU use {:.0f}%",
    "gpu_memory": "GPU memory {:.0f}%",
    "ssh": "{:.0f} SSH connections",
    "jupyter": "{:.0f} Jupyter connections",
    "cpu": "{:.2f} CPU cores busy",
}


def _say_signals(values: Values) -> str:
    return ", ".join(
        _SIGNALS[signal].format(value) + (" (simulated)" if is_simulated else "")
        for signal, value, is_simulated in values["signals"]
    )


_NOT_ENDED = "It is not ended for being idle"

TEXTS = {
    # on the way to a running server
    "reservation_requested": Text(_say_request),
    "reservation_queued": Text("Waiting at position {position}. {why}"),
    "reservation_placed": Text("Placed on {nodes}."),
    "reservation_starting": Text("Starting on {nodes}."),
    "server_answers": Text("The dev server answers on SSH."),
    "reservation_replanned": Text("Promised for {promised:time}, now {start:time}: {why}."),
    "reservation_without_start": Text("Promised for {promised:time}, and now it is not known when: {why}."),
    "node_out_of_service": Text("{node} is out of service"),
    "node_in_maintenance": Text("{node} is out for maintenance from {since:time}"),
    "quota_of_gpus": Text("the quota is {limit} GPUs at once"),
    "node_held_longer": Text("{reservation} is on {node} for longer than was planned"),
    "node_has_less_room": Text("{node} has less room than was planned"),
    # while it runs
    "server_warning": Text("Warning: {what}"),
    "server_warning_over": Text("It is over: {what}"),
    "reservation_extended": Text("Extended by {length:duration}: it ends at {end:second}."),
    "reservation_kept": Text(_say_kept),
    "usage_signals": Text(_say_signals),
    "usage_signal_unknown": Text("{signal} is not known"),
    "idle_over_kept": Text(_NOT_ENDED + ": it is kept until {until:second}."),
    "idle_over_used": Text(_NOT_ENDED + ", for it is used again: {signals}."),
    "idle_over_was_used": Text(_NOT_ENDED + ", for it was used until {until:second}."),
    "idle_over_unknown": Text(
        _NOT_ENDED + ": no limit holds any more, or how it is used is not known at the moment."
    ),
    # its end
    "idle_signals": Text("{signals}."),
    "members_gone": Text(_say_missing_members),
    "command_finished": Text("The command finished with exit code {code}."),
    "command_stopped": Text(_say_stop),
    "command_timed_out": Text(_say_timeout),
    "command_output_on_disk": Text(
        'What it wrote is on the disk "{disk}" in submit/{reservation:short}/files.'
    ),
    "reservation_cleaned": Text("Nothing of it is left on the cluster."),
}
