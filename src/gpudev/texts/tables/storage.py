"""The storage of disks: what is asked of it, and why it does not do it."""

from __future__ import annotations

from gpudev.texts.template import Text

TEXTS = {
    "no_storage": Text(
        "There is no storage for disks here.", hint="set GPU_DEV_DISK_STORAGE to kubernetes or aws."
    ),
    "listing_address_wrong": Text("{address} is not the address of a file listing."),
    # what is asked of it
    "to_list_volumes": Text("list volumes"),
    "to_list_snapshots": Text("list snapshots"),
    "to_list_zones": Text("list zones"),
    "to_make_volume": Text("make a volume"),
    "to_grow_volume": Text("grow {id}"),
    "to_snapshot_volume": Text("make a snapshot of {id}"),
    "to_tag": Text("tag"),
    "to_untag": Text("untag"),
    "to_delete_volume": Text("delete volume {id}"),
    "to_delete_snapshot": Text("delete snapshot {id}"),
    "to_keep_listing": Text("keep a file listing"),
    "to_read_listing": Text("read a file listing"),
}
