"""Gangs: reservations of several whole nodes that start together, know each other and end together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpudev.domain.catalogue import GpuType
from gpudev.domain.errors import Invalid

MASTER_PORT = "MASTER_PORT"
DEFAULT_MASTER_PORT = "29500"

GANG_ENVIRONMENT_NAMES = frozenset({"RANK", "WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MULTINODE_HOSTS"})
"""Set on every member of a gang, so its owner cannot set them. The port is a choice that one may change."""


def check_nodes(gpu_type: GpuType, gpu_count: int, *, distributed: bool) -> int:
    """How many nodes so many GPUs take; refuse a count that cannot be had, with those that can."""
    if gpu_type.max_nodes == 1 and distributed:
        raise Invalid("type_has_one_node", gpu_type=gpu_type.name, code="no_multinode")
    if gpu_type.max_nodes == 1 or (gpu_count <= gpu_type.gpus_per_node and not distributed):
        gpu_type.check_count(gpu_count)
        return 1
    nodes, rest = divmod(gpu_count, gpu_type.gpus_per_node)
    if nodes > gpu_type.max_nodes or (rest and nodes == gpu_type.max_nodes):
        raise _too_many(gpu_type, gpu_count)
    if rest or nodes <= 1:
        raise _not_whole(gpu_type, gpu_count)
    if not distributed:
        raise Invalid(
            "distributed_not_said",
            gpu_count=gpu_count,
            gpu_type=gpu_type.name,
            nodes=nodes,
            gpus_per_node=gpu_type.gpus_per_node,
            code="distributed_not_said",
        )
    return nodes


def check_gang_environment(variables: Mapping[str, str]) -> None:
    """Refuse what would be set to something else on every member."""
    for name in sorted(GANG_ENVIRONMENT_NAMES & variables.keys()):
        raise Invalid(
            "reserved_env_name_in_a_gang", name=name, changeable=MASTER_PORT, code="reserved_env_var"
        )


def gang_environment(hosts: Sequence[str], rank: int, master_address: str) -> Mapping[str, str]:
    """What a member knows of the gang: one launcher runs on each node, so ranks and sizes count nodes.

    `hosts` are the names by which members reach each other, in the order of their ranks.
    """
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(len(hosts)),
        "NODE_RANK": str(rank),
        "MASTER_ADDR": master_address,
        "MULTINODE_HOSTS": ",".join(hosts),
    }


def _too_many(gpu_type: GpuType, gpu_count: int) -> Invalid:
    return Invalid(
        "more_gpus_than_the_nodes_have",
        gpu_count=gpu_count,
        gpu_type=gpu_type.name,
        nodes=gpu_type.max_nodes,
        most=gpu_type.max_nodes * gpu_type.gpus_per_node,
        choices=_list_counts(gpu_type),
        code="too_many_gpus",
    )


def _not_whole(gpu_type: GpuType, gpu_count: int) -> Invalid:
    return Invalid(
        "gpus_are_not_whole_nodes",
        gpu_count=gpu_count,
        gpu_type=gpu_type.name,
        gpus_per_node=gpu_type.gpus_per_node,
        choices=_list_counts(gpu_type),
        choices_on_one_node=gpu_type.counts_on_one_node,
        code="bad_gpu_count",
    )


def _list_counts(gpu_type: GpuType) -> tuple[int, ...]:
    return tuple(nodes * gpu_type.gpus_per_node for nodes in range(2, gpu_type.max_nodes + 1))
