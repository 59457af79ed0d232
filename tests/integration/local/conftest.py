"""This machine as a cluster."""

from tests.support.local_fixtures import cluster, isolation, key, state_dir

__all__ = ["cluster", "isolation", "key", "state_dir"]
