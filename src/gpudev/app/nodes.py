"""Nodes and GPU types: what room there is, and how admins take a node out of service."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass

from gpudev.app.identity.authentication import Authentication, Caller, Visitor
from gpudev.domain.audit import AuditAction
from gpudev.domain.drain import Drain, read_reason
from gpudev.domain.errors import NotFound
from gpudev.ports.audit import AuditLog
from gpudev.ports.clock import Clock
from gpudev.ports.nodes import GpuTypes, Nodes, StoredAvailability, StoredNode
from gpudev.texts.fact import Fact, fact

__all__ = ["GpuTypeUseCases", "NodeUseCases", "StoredAvailability", "StoredNode"]


@dataclass(frozen=True, slots=True)
class NodeUseCases:
    """For admins. A drain is only written down; controllers see it, place elsewhere and tell the owners."""

    nodes: Nodes
    audit: AuditLog
    clock: Clock

    async def list_all(self, caller: Caller) -> tuple[StoredNode, ...]:
        await self.audit.write(caller.entry(AuditAction.LIST_NODES))
        return await self.nodes.list_all()

    async def drain(self, caller: Caller, name: str, reason: str) -> tuple[StoredNode, Fact]:
        """The node as it is afterwards, and what that means."""
        why = read_reason(reason)
        found = await self._get(name)
        entry = caller.entry(AuditAction.DRAIN_NODE, found.name, detail=why)
        await self.nodes.drain(Drain(found.name, found.gpu_type, why), self.clock.now(), entry)
        drained = await self._get(name)
        return drained, _tell_of_drain(drained)

    async def undrain(self, caller: Caller, name: str) -> tuple[StoredNode, Fact]:
        found = await self._get(name)
        entry = caller.entry(AuditAction.UNDRAIN_NODE, found.name)
        was_drained = await self.nodes.undrain(found.name, found.gpu_type, entry)
        if not was_drained:
            return found, fact("node_not_drained", node=found.name)
        if not found.is_present:
            return found, fact("node_undrained_and_gone", node=found.name)
        return await self._get(name), _tell_of_return(found)

    async def _get(self, name: str) -> StoredNode:
        nodes = await self.nodes.list_all()
        found = next((node for node in nodes if node.name == name), None)
        if found is None:
            raise NotFound(
                "node_not_found",
                name=name if name.isprintable() else None,
                nodes=[node.name for node in nodes],
            )
        return found


@dataclass(frozen=True, slots=True)
class GpuTypeUseCases:
    gpu_types: GpuTypes
    authentication: Authentication

    def list_availability(self) -> Awaitable[tuple[StoredAvailability, ...]]:
        return self.gpu_types.list_availability()

    async def list_availability_for_visitor(self, visitor: Visitor) -> tuple[StoredAvailability, ...]:
        """Who is asking is found out in the same statement: clients ask for this often."""
        user, stored = await self.gpu_types.list_availability_for_key(visitor.key)
        self.authentication.check(visitor, user)
        return stored


def _tell_of_drain(node: StoredNode) -> Fact:
    if not node.holders:
        return fact("node_drained", node=node.name)
    ends = [holder.state.expires_at for holder in node.holders if holder.state.expires_at is not None]
    until = max(ends) if len(ends) == len(node.holders) else None
    return fact("node_draining", node=node.name, count=len(node.holders), until=until)


def _tell_of_return(node: StoredNode) -> Fact:
    if node.is_schedulable:
        return fact("node_undrained", node=node.name)
    return fact("node_undrained_and_closed", node=node.name)
