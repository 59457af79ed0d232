"""`gpu-dev ssh-proxy`: the `ProxyCommand` of OpenSSH that leads to a dev server through the SSH proxy."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gpudev.client import session


@click.command("ssh-proxy")
@click.argument("reservation", metavar="ID")
@click.option("--node", metavar="N", type=int, default=0, help="Of several nodes, the one of this rank.")
@click.option("--proxy-url", metavar="URL", help="Address of the SSH proxy; without it the API is asked.")
@click.option("--api-url", metavar="URL", help="Address of the API whose reservation it is.")
def command(reservation: str, node: int, proxy_url: str | None, api_url: str | None) -> None:
    """Connect standard input and output with the SSH port of a dev server.

    OpenSSH calls it: where the operator has set up an SSH proxy, gpu-dev connect writes it into the
    reservation's configuration. It speaks with the proxy alone while your key is good, so that it works even
    while the API is being restarted.
    """
    from dataclasses import replace

    from gpudev.client import session
    from gpudev.client.config import read_surroundings
    from gpudev.client.tunnel import open_tunnel

    here = read_surroundings()
    with session.connect(replace(here, api_url=api_url) if api_url else here) as client:
        tunnel = open_tunnel(client, proxy_url or _find_proxy(client, reservation), reservation, node)
    tunnel.relay(sys.stdin.fileno(), sys.stdout.fileno())


def _find_proxy(client: session.Client, reservation: str) -> str:
    from gpudev.client.errors import NotActive
    from gpudev.client.ssh import id8

    job = client.get(reservation)
    if job.ssh_proxy_url is None:
        raise NotActive(
            f"Reservation {id8(job.job_id)} is {job.status}, or this server has no SSH proxy.",
            hint=f"Connect with: gpu-dev connect {id8(job.job_id)}",
        )
    return job.ssh_proxy_url
