"""File listings of snapshots, as objects of an S3 bucket."""

from __future__ import annotations

import asyncio
from typing import Any

from gpudev.adapters.aws.errors import translated_errors
from gpudev.domain.disk import DiskId, SnapshotId
from gpudev.domain.errors import Defect
from gpudev.texts.fact import fact

_SCHEME = "s3://"


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
