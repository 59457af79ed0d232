"""Disks of one machine: volumes and snapshots as directories."""
