"""Auto Scaling groups of AWS, read page by page."""

from __future__ import annotations

import asyncio
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from gpudev.domain.scaling import ScalingGroup
from gpudev.ports.cluster import ScalingUnavailable

_IN_SERVICE = "InService"


class AwsScaling:
    """Credentials come from where botocore finds them: the role of the pod, in a cluster."""

    def __init__(self, region: str, endpoint: str = "", page_size: int = 100) -> None:
        self._region = region
        self._endpoint = endpoint or None
        self._page_size = page_size

    async def list_groups(self) -> tuple[ScalingGroup, ...]:
        try:
            return await asyncio.to_thread(self._list)
        except (BotoCoreError, ClientError) as error:
            raise ScalingUnavailable("scaling_groups_not_listed", words=str(error)) from error

    def _list(self) -> tuple[ScalingGroup, ...]:
        client = botocore.session.Session().create_client(
            "autoscaling",
            region_name=self._region,
            endpoint_url=self._endpoint,
            config=Config(connect_timeout=5, read_timeout=20, retries={"max_attempts": 3}),
        )
        pages = client.get_paginator("describe_auto_scaling_groups").paginate(
            PaginationConfig={"PageSize": self._page_size}
        )
        return tuple(_group_from(group) for page in pages for group in page["AutoScalingGroups"])


def _group_from(group: dict[str, Any]) -> ScalingGroup:
    instances = group.get("Instances", [])
    in_service = sum(1 for instance in instances if instance["LifecycleState"] == _IN_SERVICE)
    return ScalingGroup(group["AutoScalingGroupName"], group["DesiredCapacity"], in_service)
