"""`gpu-dev admin`: what only admins may do."""

from __future__ import annotations

from gpudev.cli.lazy import Entry, LazyGroup

command = LazyGroup(
    {
        "users": Entry("gpudev.cli.commands.admin_users", "List users; disable and enable one."),
        "usage": Entry("gpudev.cli.commands.admin_usage", "Report who used what, and what it cost."),
        "audit": Entry("gpudev.cli.commands.admin_audit", "Read the audit log; verify that it is unchanged."),
        "nodes": Entry("gpudev.cli.commands.admin_nodes", "List nodes and what runs on them."),
        "drain": Entry("gpudev.cli.commands.admin_drain", "Take a node out of service; tell the owners."),
        "undrain": Entry("gpudev.cli.commands.admin_undrain", "Put a drained node back into service."),
        "disks": Entry("gpudev.cli.commands.admin_disks", "Check disks against their storage."),
        "dead-letters": Entry(
            "gpudev.cli.commands.admin_dead_letters", "List messages that were given up; retry or drop one."
        ),
        "simulate": Entry("gpudev.cli.commands.admin_simulate", "Replay weeks of requests, and compare."),
    },
    {},
    name="admin",
    help="What admins do. The server's settings say who is one.",
)
