"""One machine as the cluster: its fleet, its sandboxes and processes, and what its dev servers show.

A table of a fleet file is named by its number from 1.
"""

from __future__ import annotations

from gpudev.texts.template import Text, Values

_DISK_OR_MODE = "Look for a full disk or a changed mode."
_TABLE = "The fleet file {path} [[nodes]] number {number}: "
_LIMITED = {"memory": "memory", "cpu": "CPU", "pids": "processes"}
"""By the name of the controller of cgroups."""


def _say_running(values: Values) -> str:
    where = " at {api_url}" if values["api_url"] else ""
    return values.fill("gpu-dev runs already" + where + ", with its state in {path}.")


def _say_not_started(values: Values) -> str:
    return values.fill(
        "The {program} did not start: " + ("{words}" if values["words"] else "it left no word")
    )


def _say_problems(values: Values) -> str:
    return f"bubblewrap does not work here. {'; '.join(map(values.show, values['problems']))}."


def _say_cgroups(values: Values) -> str:
    limited, missing = (
        ", ".join(_LIMITED[name] for name in values[which]) for which in ("limited", "missing")
    )
    if not missing:
        return f"Each dev server is limited in {limited}, to its share of its node."
    as_user = "" if values["is_root"] else "--user "
    known = f"Each dev server is limited in {limited}. " if limited else ""
    return (
        f"{known}NOT limited by a cgroup: {missing}. "
        f"To limit them, start gpu-dev with: systemd-run {as_user}--scope -p Delegate=yes gpu-dev up"
    )


def _say_limits(values: Values) -> str:
    amounts = {
        "memory": "{memory_gib:g} GiB of memory",
        "cpu": "{cpus:g} CPU" if values["cpus"] == 1 else "{cpus:g} CPUs",
        "pids": "{processes} processes",
    }
    limited = [values.fill(amounts[name]) for name in amounts if name in values["enforced"]]
    words = ", ".join([*limited, values.fill("{open_files} open files")])
    missing = ", ".join(_LIMITED[name] for name in amounts if name not in values["enforced"])
    return f"{words}; NOT limited: {missing}" if missing else words


def _say_length(values: Values) -> str:
    hours, minutes = divmod(round(values["length"] / 60), 60)
    parts = [f"{count} {unit}" for count, unit in ((hours, "h"), (minutes, "min")) if count]
    return f"  Length     {' '.join(parts)} from its start"


TEXTS = {
    # the state directory and the control plane
    "machine_not_open": Text("This machine's cluster is not open."),
    "state_dir_unusable": Text(
        "The state folder {path} cannot be used: {words}.", hint="Choose another with --state-dir."
    ),
    "state_dir_in_use": Text(
        "Another gpu-dev already runs with the state directory {state_dir}.",
        hint="Use that one, or stop it with: gpu-dev down",
    ),
    "control_plane_runs": Text(_say_running, hint="Use it as it is, or stop it with: gpu-dev down"),
    "own_process_not_found": Text("This process cannot find itself in /proc."),
    "path_in_state_dir": Text(
        "{path} is inside the state directory {state_dir}, which no dev server may see.",
        hint="Name another directory.",
    ),
    "program_restarted": Text("The {program} ended with {status} and is started again."),
    "program_not_startable": Text("The {program} cannot be started: {error}."),
    "program_not_started": Text("The {program} did not start.", hint="Its words are above."),
    "program_not_started_with_log": Text(_say_not_started, hint="Its log is {log}"),
    # fleets
    "fleet_unknown": Text(
        'There is no fleet "{choice}", and no file of that name.',
        hint="Use {presets} or the path of a fleet file.",
    ),
    "no_gpu_detected": Text(
        "This machine has no NVIDIA GPU, or its driver is not loaded.",
        hint="Check with nvidia-smi, or use simulated GPUs: --fleet test",
    ),
    "fleet_file_not_toml": Text(
        "The fleet file {path} is not TOML: {words}.", hint="Write it as shown in docs/howto/fleet.md."
    ),
    "fleet_file_unreadable": Text(
        "The fleet file {path} cannot be read: {words}.", hint="Check the path and its mode."
    ),
    "fleet_file_without_nodes": Text(
        "The fleet file {path} must hold [[nodes]] tables and nothing else.",
        hint='Start with: [[nodes]] type = "t4"',
    ),
    "fleet_table_not_table": Text(_TABLE + "it is not a table.", hint='Write: [[nodes]] type = "t4"'),
    "fleet_key_unknown": Text(_TABLE + '"{key}" is not known.', hint="The keys are {keys}."),
    "fleet_labels_wrong": Text(
        _TABLE + "labels = {value} are not labels.", hint='Use for example {{ nsight = "true" }}.'
    ),
    "fleet_type_unknown": Text(_TABLE + "type = {value} is not a GPU type.", hint="The types are {types}."),
    "fleet_gpus_on_cpu_node": Text(_TABLE + "{gpu_type} nodes have no GPUs.", hint="Leave gpus out."),
    "fleet_number_wrong": Text(
        _TABLE + "{key} = {value} is not a number of them.", hint="Use 1 to {highest}."
    ),
    "fleet_sizes_differ": Text(
        "The fleet file {path} gives {gpu_type} nodes of {first} and of {other} GPUs.",
        hint="All nodes of a type have the same number; use another type for the others.",
    ),
    # sandboxes and limits
    "isolated_by_bubblewrap": Text(
        "Dev servers are sandboxed with bubblewrap: they do not see each other's files, processes and "
        "shared memory. They share the machine's network."
    ),
    "not_isolated": Text(
        "Dev servers are NOT isolated: everyone who logs in can read and change everything that the user "
        "who started gpu-dev can."
    ),
    "bubblewrap_missing": Text("No bubblewrap is installed."),
    "bubblewrap_problem": Text("{program}: {why}"),
    "sandbox_timeout": Text("bubblewrap had not made it after {seconds} seconds."),
    "probe_timeout": Text("no sandbox after {seconds} seconds"),
    "probe_exit_code": Text("exit code {code}"),
    "no_sandbox_wanted": Text("GPU_DEV_ISOLATION=none asks for this; leave it out to have sandboxes."),
    "apparmor_restricts": Text(
        "AppArmor keeps ordinary users from making sandboxes here. Install the system's bubblewrap, or "
        "the AppArmor profile that gpu-dev up prints, and start gpu-dev again."
    ),
    "apparmor_profile": Text(
        "As root, write this to {path}:\n\n{profile}\nthen load it: apparmor_parser -r {path}"
    ),
    "namespaces_forbidden": Text(
        "This kernel forbids user namespaces. As root: sysctl -w kernel.unprivileged_userns_clone=1 "
        "user.max_user_namespaces=10000"
    ),
    "bubblewrap_does_not_work": Text(_say_problems),
    "bubblewrap_not_installed": Text("Install bubblewrap to sandbox them: pip install 'gpu-dev[local]'"),
    "cgroup_limits": Text(_say_cgroups),
    "server_limits": Text(_say_limits),
    # dev servers
    "no_such_node_here": Text("There is no {gpu_type} node {node} here."),
    "node_too_full": Text("Node {node} has {free} of {slots} free, and {wanted} are wanted."),
    "no_port_free": Text(
        "No port is free for its SSH server: other programs on this machine use all ports from "
        "{first} to {last}. It starts when one is free."
    ),
    "port_in_use": Text("Port {port} is in use by another process."),
    "gpu_gone": Text("The GPU {gpu} is no longer on this machine."),
    "server_name_taken": Text(
        "The name {name} already belongs to the dev server of reservation {owner}, not of {reservation_id}."
    ),
    "server_not_written_down": Text(
        "The dev server could not be written down in {state_dir}: {words}.", hint=_DISK_OR_MODE
    ),
    "server_silent": Text("It does not answer on SSH yet; port {port} says {banner}."),
    "server_ended_and_starts_again": Text("The dev server ended and is started again."),
    "server_ended_while_starting": Text("The dev server ended while it started."),
    "gang_member_ended": Text("It has ended, and a gang ends with each of its members."),
    "upkeep_failed": Text("gpu-dev itself failed to look after it: {error}"),
    "server_not_ended_yet": Text(
        "The dev server {name} has not ended yet.",
        hint="A process of it waits for a GPU or a disk, or the state directory cannot be written.",
    ),
    "process_does_not_end": Text(
        "Process {pid} does not end, although it was killed.",
        hint="It waits for the kernel, for a GPU or a disk most likely; it is tried again.",
    ),
    "processes_do_not_end": Text(
        "Processes [{pids}] do not end, although they were killed.",
        hint="They wait for a GPU or a disk, or are another user's; it is tried again.",
    ),
    "process_ended_early": Text("Process {pid} ended before it could be written down."),
    "record_missing": Text("There is no record of the dev server {key}."),
    "record_unreadable": Text(
        "The record {path} cannot be read: {error}.",
        hint="It was changed by hand or by another version. Move its directory away and start again.",
    ),
    "shell_not_started": Text("gpu-dev: no shell could be started: {error}"),
    # what a person reads after logging in
    "greeting_title": Text("gpu-dev: {name} ({id:short}) of {username}"),
    "greeting_gpus": Text("  GPUs       {count} {gpu_type} on {node}"),
    "greeting_simulated_gpus": Text(
        "  GPUs       {count} simulated {gpu_type} on {node}; no real GPU is behind them"
    ),
    "greeting_no_gpus": Text("  GPUs       none ({gpu_type} on {node})"),
    "greeting_gang": Text("  Gang       rank {rank} of {size}; ssh goes to {others}"),
    "greeting_gang_without_names": Text(
        "  Gang       rank {rank} of {size}; ssh goes to {others}. Only ssh, scp and sftp know these names; "
        "other programs use {host} and $MASTER_PORT"
    ),
    "greeting_length": Text(_say_length),
    "greeting_home": Text("  Home       {home} is not kept as a disk; the next reservation has its own"),
    "greeting_disk": Text(
        '  Home       {home} is your disk "{disk}" ({size_gb} GB asked for, not enforced here); '
        "it outlives the reservation"
    ),
    "greeting_scratch": Text("  Scratch    {workspace} goes when the reservation ends"),
    "greeting_isolation": Text("  Isolation  {isolation}"),
    "greeting_without_isolation": Text("  Isolation  {isolation} What would help: gpu-dev status"),
    "greeting_limits": Text("  Limits     {limits}"),
    "greeting_no_root": Text("  Root       There is no sudo here."),
    "greeting_notice": Text("  Note       {notice}"),
}
