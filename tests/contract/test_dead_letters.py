"""Dead letters: kept with their error, sent again or deleted, each once and on record."""

from __future__ import annotations

import asyncio

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.audit import AuditEntry
from gpudev.ports.audit import AuditQuery
from gpudev.ports.queue import LetterId, QueueName

pytestmark = pytest.mark.anyio

every_queue = pytest.mark.parametrize("queue", list(QueueName))


async def send(stores: Stores, queue: QueueName, message: str = '{"foo": 1}') -> int:
    return int(await stores.database.fetch_value("SELECT pgmq.send($1, $2::text::jsonb)", queue, message))


@every_queue
async def test_a_buried_message_is_kept_once_with_its_error(stores: Stores, queue: QueueName) -> None:
    message = await send(stores, queue)
    for error in ("Bad\0 words.", "Later words."):
        await stores.messages.dead_letters.bury(queue, message, error)
    [letter] = await stores.messages.dead_letters.list_all(10)
    assert (letter.letter_id.queue, letter.message, letter.error) == (queue, '{"foo": 1}', "Bad? words.")
    assert (await stores.messages.dead_letters.count())[queue] == 1
    assert await stores.database.fetch_value(f"SELECT count(*) FROM pgmq.q_{queue}") == 0  # noqa: S608 - ours


@every_queue
async def test_a_letter_is_sent_again_once_and_on_record(stores: Stores, queue: QueueName) -> None:
    await stores.messages.dead_letters.bury(queue, await send(stores, queue), "Bad.")
    [letter] = await stores.messages.dead_letters.list_all(10)
    entry = AuditEntry("grace", "retry_dead_letter", letter.letter_id.text)
    tries = await asyncio.gather(
        *(stores.messages.dead_letters.retry(letter.letter_id, entry) for _ in range(3))
    )
    assert sorted(tries) == [False, False, True]
    assert await stores.database.fetch_value(f"SELECT count(*) FROM pgmq.q_{queue}") == 1  # noqa: S608 - ours
    assert await stores.messages.dead_letters.list_all(10) == ()
    [record] = await stores.audit.list_page(AuditQuery(username="grace"))
    assert record.entry.target == letter.letter_id.text


@every_queue
async def test_a_letter_is_deleted_once(stores: Stores, queue: QueueName) -> None:
    await stores.messages.dead_letters.bury(queue, await send(stores, queue), "Bad.")
    [letter] = await stores.messages.dead_letters.list_all(10)
    entry = AuditEntry("grace", "drop_dead_letter", letter.letter_id.text)
    assert await stores.messages.dead_letters.drop(letter.letter_id, entry)
    assert not await stores.messages.dead_letters.drop(letter.letter_id, entry)
    assert await stores.messages.dead_letters.list_all(10) == ()


async def test_what_was_never_there_is_neither_sent_nor_deleted(stores: Stores) -> None:
    entry = AuditEntry("grace", "drop_dead_letter", "gpu_reservations-99")
    unknown = LetterId(QueueName.RESERVATIONS, 99)
    assert not await stores.messages.dead_letters.retry(unknown, entry)
    assert not await stores.messages.dead_letters.drop(unknown, entry)
    assert await stores.audit.list_page(AuditQuery(username="grace")) == ()


async def test_readers_get_only_messages_of_ours(stores: Stores) -> None:
    for message in ('{"foo": 1}', '"text"', "[1]", "null", '{"reservation_id": 7}', '{"disk_id": {}}'):
        await send(stores, QueueName.RESERVATIONS, message)
        await send(stores, QueueName.DISKS, message)
    assert await stores.messages.of_reservations.read(10) == ()
    assert await stores.messages.of_disks.read(10) == ()
    assert len(await stores.messages.dead_letters.list_all(100)) == 12
