"""Our side of a WebSocket against a server's side that others wrote, however the bytes are cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.frames import Frame as TheirFrame
from websockets.frames import Opcode as TheirOpcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from gpudev.client.errors import ServerFailed
from gpudev.client.websocket import END_OF_HEAD, FrameReader, Head, Opcode, Upgrade, make_frame, mask
from gpudev.wire.tunnel import SUBPROTOCOL

LENGTHS = st.sampled_from([0, 1, 125, 126, 127, 65535, 65536, 70001])


def open_server() -> tuple[ServerProtocol, Upgrade, bytes]:
    """A server that has granted our request, and its answer."""
    server = ServerProtocol(subprotocols=[Subprotocol(SUBPROTOCOL)])
    upgrade = Upgrade.new(SUBPROTOCOL)
    server.receive_data(upgrade.request("/tunnel", {"Host": "example.org"}))
    (request,) = server.events_received()
    assert isinstance(request, Request)
    server.send_response(server.accept(request))
    return server, upgrade, b"".join(server.data_to_send())


def test_a_server_grants_our_request_and_we_know_its_answer() -> None:
    server, upgrade, answer = open_server()
    assert server.state is State.OPEN
    head = Head.parse(answer.partition(END_OF_HEAD)[0])
    assert head.status == 101
    upgrade.check(head.headers)


def test_an_answer_to_somebody_else_is_refused() -> None:
    _, _, answer = open_server()
    head = Head.parse(answer.partition(END_OF_HEAD)[0])
    with pytest.raises(ServerFailed):
        Upgrade.new(SUBPROTOCOL).check(head.headers)


def test_what_does_not_speak_http_is_refused() -> None:
    with pytest.raises(ServerFailed):
        Head.parse(b"SSH-2.0-OpenSSH_9.2")


@given(length=LENGTHS, content=st.binary(min_size=1, max_size=7))
def test_what_we_send_arrives_as_it_was(length: int, content: bytes) -> None:
    payload = (content * (length // len(content) + 1))[:length]
    server, _, _ = open_server()
    server.receive_data(make_frame(Opcode.BINARY, payload))
    (frame,) = server.events_received()
    assert isinstance(frame, TheirFrame)
    assert (frame.opcode, bytes(frame.data)) == (TheirOpcode.BINARY, payload)


@given(payload=st.binary(max_size=300), key=st.binary(min_size=4, max_size=4))
def test_masking_twice_changes_nothing(payload: bytes, key: bytes) -> None:
    masked = mask(payload, key)
    assert masked == bytes(byte ^ key[index % 4] for index, byte in enumerate(payload))
    assert mask(bytes(masked), key) == payload


@settings(deadline=None)
@given(lengths=st.lists(LENGTHS, min_size=1, max_size=4), cut=st.integers(1, 70_000))
def test_bytes_of_the_server_come_out_in_order_however_they_are_cut(lengths: list[int], cut: int) -> None:
    server, _, _ = open_server()
    payloads = [bytes([65 + index]) * length for index, length in enumerate(lengths)]
    for payload in payloads:
        server.send_binary(payload)
        server.send_ping(b"alive")
    server.send_text(b"over")
    sent = b"".join(server.data_to_send())
    cut = max(cut, len(sent) // 500)
    reader = FrameReader()
    frames = [
        (frame.opcode, bytes(frame.payload))
        for at in range(0, len(sent), cut)
        for frame in reader.feed(sent[at : at + cut])
    ]
    assert b"".join(payload for opcode, payload in frames if opcode is Opcode.BINARY) == b"".join(payloads)
    words = [frame for frame in frames if frame[0] is not Opcode.BINARY]
    assert words == [(Opcode.PING, b"alive")] * len(payloads) + [(Opcode.TEXT, b"over")]


def test_a_message_in_several_frames_is_one_stream() -> None:
    server, _, _ = open_server()
    server.send_binary(b"one ", fin=False)
    server.send_ping(b"")
    server.send_continuation(b"two", fin=True)
    frames = list(FrameReader().feed(b"".join(server.data_to_send())))
    assert b"".join(bytes(frame.payload) for frame in frames if frame.opcode is Opcode.BINARY) == b"one two"


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\x82\x81abcdx", id="masked"),
        pytest.param(b"\x83\x01x", id="unknown-kind"),
        pytest.param(b"\xc2\x01x", id="compressed"),
        pytest.param(b"\x81\x7e\xff\xff", id="endless-words"),
    ],
)
def test_what_no_server_sends_is_refused(sent: bytes) -> None:
    with pytest.raises(ServerFailed):
        list(FrameReader().feed(sent))
