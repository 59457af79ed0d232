"""Disks in a cluster: claims of a StorageClass as volumes, and VolumeSnapshots of them."""
