"""Why a server does not start: its settings, its files, its port."""

from __future__ import annotations

from gpudev.texts.template import Text

_NUMBER = "a number, 0 or more"
_WHOLE_NUMBER = "a whole number, 0 or more"
_POLICY_VALUES = {
    "user": "a user's name, or left out for everybody",
    "type": "a GPU type that is on offer, or left out for every type",
    "gpus": _WHOLE_NUMBER,
    "waiting": _WHOLE_NUMBER,
    "reserved_gpu_hours": _NUMBER,
    "gpu_hours": _NUMBER,
    "long_share": "a part, more than 0 and at most 1",
    "period_days": "a number of days, more than 0 and at most 366",
    "half_life_hours": "a number of hours, more than 0",
    "nodes": "a list of one or more names of nodes",
    "from": "a time with its offset, 2030-01-01T08:00:00Z for example",
    "to": "a time with its offset, later than `from`",
    "node_labels": 'labels with lists of their values, nsight = ["true"] for example',
}

_POLICY = {
    "policy_file_not_read": Text(
        "The policy file {path} cannot be read: {words}.",
        hint="Set GPU_DEV_POLICY_FILE to a TOML file, or leave it out.",
    ),
    "bad_policy_line": Text("{path}, line {line}: {problem}", hint="Allowed: {allowed}."),
    "policy_is_not_toml": Text("this is not TOML: {words}."),
    "policy_key_unknown": Text('"{key}" is not known here.'),
    "policy_key_missing": Text('"{key}" is missing.'),
    "policy_value_not_possible": Text("{key} = {value} is not possible."),
    "policy_label_without_values": Text("{name} has no values."),
    "policy_type_unknown": Text('there is no GPU type "{name}".'),
    "policy_quota_twice": Text("user {user} and type {gpu_type} have a quota on line {line} already."),
    "policy_window_without_nodes": Text("it is not clear which nodes."),
    "policy_window_without_length": Text("it ends at {end:time}, not after its beginning."),
    "policy_windows_overlap": Text("this maintenance overlaps with that of line {line} on the same nodes."),
    "policy_takes_toml": Text("TOML as in docs/howto/policy.md"),
    "policy_takes_one_of": Text("{choices:or}"),
    "policy_takes_value_of": Text(lambda values: _POLICY_VALUES[values["key"]]),
    "policy_takes_one_quota": Text("one [[quotas]] for each user and type"),
    "policy_takes_nodes_or_type": Text("either nodes or type"),
    "policy_takes_one_window": Text("one maintenance of a node at a time"),
}

_START = {
    "wanted_sandbox_does_not_work": Text(
        "GPU_DEV_ISOLATION asks for bubblewrap, which does not work here.",
        hint=lambda values: values.fill("{remedy}\n{lines}" if values["lines"] else "{remedy}").strip(),
    ),
    "bad_gpu_types_file": Text(
        "The file of GPU types {path} cannot be used: {words}",
        hint="Write it as shown in docs/howto/kubernetes.md.",
    ),
    "no_cluster_configured": Text(
        "No cluster is configured.",
        hint="Run gpu-dev on this machine with gpu-dev up, or set GPU_DEV_CLUSTER=kubernetes.",
    ),
    "port_taken": Text(
        "Port {port} cannot be used: {words}.", hint="Choose another with --port, or leave --port out."
    ),
    "database_of_another_cluster": Text(
        "The database belongs to gpu-dev on another machine, cluster or namespace, or with another state "
        "folder.",
        hint="Set GPU_DEV_DATABASE_URL to a database of its own, or leave it out.",
    ),
    "did_not_start": Text("gpu-dev did not start. {words}", hint="Logs are in {logs}."),
    "did_not_stop": Text(
        "gpu-dev (process {pid}) did not stop in {seconds} seconds.", hint="Look into {logs}."
    ),
}

TEXTS = {**_POLICY, **_START}
