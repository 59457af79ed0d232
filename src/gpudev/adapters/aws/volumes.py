"""AWS as the storage of disks: gp3 volumes of EBS, their snapshots, and file listings in an S3 bucket.

Volumes are encrypted. botocore blocks, so every call has a thread. Listings are paged; no request is made
for each disk. Errors of AWS are translated: some pass by themselves, the others are refusals.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from gpudev.adapters.aws.ebs_facts import (
    ANY_NAME,
    DISK_ID,
    TOKEN,
    USER,
    outdated_keys,
    snapshot_from,
    tags_to_aws,
    volume_from,
)
from gpudev.domain.disk import DiskId, SnapshotId, VolumeId
from gpudev.domain.errors import Defect, StorageRefused, StorageUnavailable
from gpudev.domain.volume import (
    DiskTags,
    FileListing,
    Holdings,
    ObservedSnapshot,
    ObservedVolume,
    SnapshotSpec,
    VolumeSpec,
)
from gpudev.texts.fact import Fact, fact

_PASSING = frozenset(
    {
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "RequestThrottled",
        "SlowDown",
        "SnapshotCreationPerVolumeRateExceeded",
        "ConcurrentSnapshotLimitExceeded",
        "InsufficientVolumeCapacity",
        "VolumeModificationRateExceeded",
        "IncorrectModificationState",
        "IncorrectState",
        "InternalError",
        "InternalFailure",
        "ServerInternal",
        "ServiceUnavailable",
        "Unavailable",
        "RequestExpired",
        "RequestTimeout",
    }
)
"""Asking again, later, is all there is to do."""

GONE = frozenset({"InvalidVolume.NotFound", "InvalidSnapshot.NotFound"})
"""Of an answer to a deletion: it is done."""
T = TypeVar("T")

_THREADS = 8
_PAGE = 500
_TRIES = 4
_CONNECT_SECONDS = 20
_ANSWER_SECONDS = 60
"""A page of a long listing takes its time."""

Filters = Mapping[str, Sequence[str]]
_SCHEME = "s3://"


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def translated_errors(what: Fact) -> Iterator[None]:
    """No answer and "later" are `StorageUnavailable`, a refusal is `StorageRefused` with what to do."""
    try:
        yield
    except ClientError as error:
        code = code_of(error)
        words = str(error.response.get("Error", {}).get("Message", "")) or code
        if code in _PASSING:
            raise StorageUnavailable("aws_asks_to_wait", aws_code=code, what=what) from error
        raise StorageRefused("aws_refused", aws_code=code, what=what, words=words) from error
    except BotoCoreError as error:
        raise StorageUnavailable("aws_silent", words=str(error)) from error


def make_client(service: str, region: str, endpoint: str | None = None) -> Any:
    """Retries by error code are botocore's own; the address can also be set by `AWS_ENDPOINT_URL`."""
    config = Config(
        retries={"mode": "standard", "total_max_attempts": _TRIES},
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_ANSWER_SECONDS,
    )
    return botocore.session.Session().create_client(
        service, region_name=region, endpoint_url=endpoint, config=config
    )


class AwsVolumes:
    def __init__(self, client: Any, zone: str = "", kms_key: str = "") -> None:
        self._client = client
        self._zone = zone
        self._kms_key = kms_key
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="ebs")

    async def find(self, disk_id: DiskId, volume_id: VolumeId | None) -> Holdings:
        """By the disk's tag; what was made by somebody else has none yet, and is found by its volume."""
        tagged = {f"tag:{DISK_ID}": [disk_id]}
        volumes, snapshots = await asyncio.gather(self._list_volumes(tagged), self._list_snapshots(tagged))
        if volume_id is not None and volume_id not in {each.volume_id for each in volumes}:
            named = {"volume-id": [volume_id]}
            more, of_it = await asyncio.gather(self._list_volumes(named), self._list_snapshots(named))
            known = {each.snapshot_id for each in snapshots}
            volumes += more
            snapshots += tuple(each for each in of_it if each.snapshot_id not in known)
        return Holdings(volumes, snapshots)

    async def list_volumes(self) -> tuple[ObservedVolume, ...]:
        """Also those that say only half, so that somebody hears of them."""
        of_users, of_names = await asyncio.gather(
            self._list_volumes({"tag-key": [USER]}),
            self._list_volumes({"tag-key": [ANY_NAME]}),
        )
        return tuple({each.volume_id: each for each in (*of_users, *of_names)}.values())

    async def list_snapshots(self) -> tuple[ObservedSnapshot, ...]:
        return await self._list_snapshots({"tag-key": [USER]})

    async def create_volume(self, spec: VolumeSpec) -> None:
        zone = spec.zone or self._zone or await self._first_zone()
        source = spec.source_snapshot_id
        request: dict[str, Any] = {
            "AvailabilityZone": zone,
            "Size": spec.size_gb,
            "VolumeType": "gp3",
            "Encrypted": True,
            "ClientToken": _short(spec.token),
            "TagSpecifications": [
                {
                    "ResourceType": "volume",
                    "Tags": tags_to_aws(spec.tags, **{TOKEN: spec.token}),
                }
            ],
        }
        request |= {"SnapshotId": source} if source else {}
        request |= {"KmsKeyId": self._kms_key} if self._kms_key else {}
        await self._call(fact("to_make_volume"), lambda: self._client.create_volume(**request))

    async def grow_volume(self, volume_id: VolumeId, size_gb: int) -> None:
        await self._call(
            fact("to_grow_volume", id=volume_id),
            lambda: self._client.modify_volume(VolumeId=volume_id, Size=size_gb),
        )

    async def create_snapshot(self, spec: SnapshotSpec) -> None:
        """EBS has no token for snapshots: ours is a tag, which is looked for first."""
        begun = await self._list_snapshots({f"tag:{TOKEN}": [spec.token]})
        if begun:
            return
        tags = tags_to_aws(spec.tags, **{TOKEN: spec.token})
        await self._call(
            fact("to_snapshot_volume", id=spec.volume_id),
            lambda: self._client.create_snapshot(
                VolumeId=spec.volume_id,
                Description=f"gpu-dev {spec.tags.username} {spec.tags.disk_name}",
                TagSpecifications=[{"ResourceType": "snapshot", "Tags": tags}],
            ),
        )

    async def set_tags(
        self, volume_ids: Sequence[VolumeId], snapshot_ids: Sequence[SnapshotId], tags: DiskTags
    ) -> None:
        """New ones first: at no moment is there nothing to tell whose they are."""
        ids = [*volume_ids, *snapshot_ids]
        if not ids:
            return
        added = tags_to_aws(tags)
        await self._call(fact("to_tag"), lambda: self._client.create_tags(Resources=ids, Tags=added))
        outdated = outdated_keys(tags)
        await self._call(fact("to_untag"), lambda: self._client.delete_tags(Resources=ids, Tags=outdated))

    async def delete_volume(self, volume_id: VolumeId) -> None:
        await self._delete(
            fact("to_delete_volume", id=volume_id), lambda: self._client.delete_volume(VolumeId=volume_id)
        )

    async def delete_snapshot(self, snapshot_id: SnapshotId) -> None:
        await self._delete(
            fact("to_delete_snapshot", id=snapshot_id),
            lambda: self._client.delete_snapshot(SnapshotId=snapshot_id),
        )

    async def list_files(self, snapshot_id: SnapshotId) -> FileListing | None:  # noqa: ARG002 - the port's
        """A snapshot of EBS cannot be read without a machine that mounts it."""
        return None

    async def _first_zone(self) -> str:
        answer = await self._call(fact("to_list_zones"), self._client.describe_availability_zones)
        return min(str(zone["ZoneName"]) for zone in answer["AvailabilityZones"])

    async def _list_volumes(self, filters: Filters) -> tuple[ObservedVolume, ...]:
        pages = self._pages("describe_volumes", filters)
        found = await self._call(
            fact("to_list_volumes"), lambda: [each for page in pages for each in page["Volumes"]]
        )
        return tuple(map(volume_from, found))

    async def _list_snapshots(self, filters: Filters) -> tuple[ObservedSnapshot, ...]:
        pages = self._pages("describe_snapshots", filters, OwnerIds=["self"])
        found = await self._call(
            fact("to_list_snapshots"), lambda: [each for page in pages for each in page["Snapshots"]]
        )
        return tuple(map(snapshot_from, found))

    def _pages(self, operation: str, filters: Filters, **more: Any) -> Iterator[Any]:
        """Nothing is asked before the first page is."""
        named = [{"Name": name, "Values": list(values)} for name, values in filters.items()]
        paginator = self._client.get_paginator(operation)
        pages: Iterator[Any] = paginator.paginate(Filters=named, PaginationConfig={"PageSize": _PAGE}, **more)
        return pages

    async def _delete(self, what: Fact, call: Callable[[], Any]) -> None:
        def delete() -> None:
            try:
                call()
            except ClientError as error:
                if code_of(error) not in GONE:
                    raise

        await self._call(what, delete)

    async def _call(self, what: Fact, call: Callable[[], T]) -> T:
        with translated_errors(what):
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)


def _short(token: str) -> str:
    """AWS takes 64 characters: two ids are too long, and the last one tells them apart."""
    return token[-64:]


class S3Listings:
    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    async def keep(self, disk_id: DiskId, snapshot_id: SnapshotId, text: str) -> str:
        key = f"disks/{disk_id}/{snapshot_id}.txt"
        content = text.encode()

        def put() -> None:
            self._client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=content,
                ContentType="text/plain; charset=utf-8",
                ServerSideEncryption="AES256",
            )

        with translated_errors(fact("to_keep_listing")):
            await asyncio.to_thread(put)
        return f"{_SCHEME}{self._bucket}/{key}"

    async def read(self, address: str) -> str:
        bucket, _, key = address.removeprefix(_SCHEME).partition("/")
        if not address.startswith(_SCHEME) or not key:
            raise Defect("listing_address_wrong", address=address)

        def get() -> str:
            content: bytes = self._client.get_object(Bucket=bucket, Key=key)["Body"].read()
            return content.decode()

        with translated_errors(fact("to_read_listing")):
            return await asyncio.to_thread(get)
