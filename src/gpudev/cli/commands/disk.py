"""`gpu-dev disk`: homes that outlive their reservations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpudev.cli.completion import complete_with
from gpudev.cli.output import (
    Listing,
    Output,
    confirm,
    format_options,
    json_option,
    pass_output,
    print_listing,
    put,
    say,
)
from gpudev.cli.screen import can_ask, can_draw, find_width

if TYPE_CHECKING:
    from gpudev.client.session import Client
    from gpudev.wire.disks import DiskActionResponse, DiskInfo

_no_wait = click.option("--no-wait", is_flag=True, help="Do not wait until it is done.")


@click.group("disk")
def command() -> None:
    """Keep your files: disks are homes that outlive their reservations.

    A reservation mounts one as /home/dev: gpu-dev reserve --disk NAME
    """


@command.command("list")
@click.option("--deleted", is_flag=True, help="Those that are deleted and can be restored.")
@format_options
@pass_output
def list_disks(output: Output, *, deleted: bool) -> None:
    """List your disks."""
    from gpudev.cli.render.disks import format_disks
    from gpudev.cli.render.times import read_now
    from gpudev.client import session

    with session.connect() as client:
        answer = client.disks.list(deleted=deleted)
    remark = "No deleted disks." if deleted else "No disks. The first reservation makes one."
    names = tuple(disk.disk_name for disk in answer.disks)
    table = format_disks(answer.disks, read_now(), find_width())
    print_listing(Listing(answer, names, table, remark, is_empty=not names), output.format)


@command.command("show")
@click.argument("name", shell_complete=complete_with("disks"))
@json_option
@pass_output
def show(output: Output, name: str) -> None:
    """Show one disk."""
    from gpudev.client import session

    with session.connect() as client:
        _print_disk(client.disks.get(name), output)


@command.command("create")
@click.argument("name")
@click.option("--size", "size_gb", type=int, metavar="GB", help="How big.  [default: 100]")
@_no_wait
@json_option
@pass_output
def create(output: Output, name: str, *, size_gb: int | None, no_wait: bool) -> None:
    """Make an empty disk."""
    from gpudev.client import session

    with session.connect() as client:
        _finish(client, client.disks.create(name, size_gb), output, no_wait=no_wait)


@command.command("clone")
@click.argument("name", shell_complete=complete_with("disks"))
@click.argument("new_name")
@_no_wait
@json_option
@pass_output
def clone(output: Output, name: str, new_name: str, *, no_wait: bool) -> None:
    """Copy a disk, as it is or as it was when it was last given back."""
    from gpudev.client import session

    with session.connect() as client:
        _finish(client, client.disks.clone(name, new_name), output, no_wait=no_wait)


@command.command("grow")
@click.argument("name", shell_complete=complete_with("disks"))
@click.argument("size_gb", metavar="GB", type=int)
@_no_wait
@json_option
@pass_output
def grow(output: Output, name: str, size_gb: int, *, no_wait: bool) -> None:
    """Make a disk bigger. It never gets smaller."""
    from gpudev.client import session

    with session.connect() as client:
        _finish(client, client.disks.grow(name, size_gb), output, no_wait=no_wait)


@command.command("rename")
@click.argument("name", shell_complete=complete_with("disks"))
@click.argument("new_name")
@json_option
@pass_output
def rename(output: Output, name: str, new_name: str) -> None:
    """Call a disk something else."""
    from gpudev.cli.render.data import format_json
    from gpudev.client import session

    with session.connect() as client:
        renamed = client.disks.rename(name, new_name)
    for error in renamed.errors or []:
        say(f"Warning: {error}")
    put(format_json(renamed) if output.as_json else renamed.message)


@command.command("delete")
@click.argument("name", shell_complete=complete_with("disks"))
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@_no_wait
@json_option
@pass_output
@click.pass_context
def delete(context: click.Context, output: Output, name: str, *, yes: bool, no_wait: bool) -> None:
    """Delete a disk. For 30 days it can be restored."""
    from gpudev.client import session

    if not yes and can_ask() and not confirm(f'Delete disk "{name}"?'):
        say("Nothing was deleted.")
        context.exit(1)
    with session.connect() as client:
        _finish(client, client.disks.delete(name), output, no_wait=no_wait)


@command.command("restore")
@click.argument("name")
@click.option("--as", "new_name", metavar="NAME", help="Another name, where the old one is taken.")
@_no_wait
@json_option
@pass_output
def restore(output: Output, name: str, *, new_name: str | None, no_wait: bool) -> None:
    """Have a deleted disk back."""
    from gpudev.client import session

    with session.connect() as client:
        _finish(client, client.disks.restore(name, new_name), output, no_wait=no_wait)


@command.command("list-content")
@click.argument("name", shell_complete=complete_with("disks"))
@json_option
@pass_output
def list_content(output: Output, name: str) -> None:
    """List the files on the newest snapshot of a disk."""
    from gpudev.cli.render.data import format_json
    from gpudev.client import session

    with session.connect() as client:
        answer = client.disks.read_content(name)
    if output.as_json:
        put(format_json(answer))
        return
    if answer.message:
        say(answer.message)
    elif answer.snapshot_date:
        from gpudev.cli.render.times import format_moment, read_now

        say(f"Files on the snapshot of {format_moment(answer.snapshot_date, read_now())}:")
    if answer.content:
        put(answer.content)


@command.command("snapshots")
@click.argument("name", shell_complete=complete_with("disks"))
@format_options
@pass_output
def snapshots(output: Output, name: str) -> None:
    """List the snapshots of a disk, the newest first."""
    from gpudev.cli.render.disks import format_snapshots
    from gpudev.cli.render.times import read_now
    from gpudev.client import session

    with session.connect() as client:
        answer = client.disks.list_snapshots(name)
    remark = "No snapshots. One is made whenever the disk is given back."
    names = tuple(each.snapshot_id for each in answer.snapshots)
    table = format_snapshots(answer.snapshots, read_now(), find_width())
    print_listing(Listing(answer, names, table, remark, is_empty=not names), output.format)


def _finish(client: Client, asked: DiskActionResponse, output: Output, *, no_wait: bool) -> None:
    """Say what was asked for, wait with progress, and show the disk."""
    from gpudev.cli.progress import open_progress
    from gpudev.cli.render.disks import format_progress
    from gpudev.cli.render.progress import Picture
    from gpudev.client.config import read_surroundings

    say(asked.message)
    if no_wait:
        _print_disk(client.disks.get(asked.disk_name), output)
        return
    with open_progress(live=can_draw(read_surroundings())) as progress:

        def show(disk: DiskInfo) -> None:
            words = format_progress(disk)
            progress.show(Picture(words, plain=words))

        disk = client.disks.wait_for(asked, tell=show)
    _print_disk(disk, output)


def _print_disk(disk: DiskInfo, output: Output) -> None:
    from gpudev.cli.render.data import format_json
    from gpudev.cli.render.disks import format_disk
    from gpudev.cli.render.times import read_now

    put(format_json(disk) if output.as_json else format_disk(disk, read_now()))
