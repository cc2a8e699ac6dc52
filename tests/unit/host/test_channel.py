"""Messages between a host and a game that may stop at any byte."""

import os
import select
import signal
import socket
import threading
import time
from multiprocessing.connection import Connection

import pytest
from garbage_game import GarbageBridge
from hypothesis import given
from hypothesis import strategies as st

from rollout.api import Start
from rollout.config import HostConfig
from rollout.host import Pool
from rollout.host.channel import FRAME, MESSAGE, Incomplete, Wire

BIG = "x" * 3_000_000  # more than any socket holds


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    wire = Wire(ours)
    yield wire, theirs
    wire.close()
    theirs.close()


@given(cuts=st.lists(st.integers(0, 60), max_size=6))
def test_a_message_may_come_in_parts(cuts):
    ours, theirs = socket.socketpair()
    wire, said = Wire(ours), ("frame", {"details": "as sent"})
    reader, writer = os.pipe()
    Connection(writer, readable=False).send(said)  # as a game sends it
    whole = MESSAGE + os.read(reader, 1000)
    os.close(reader)
    places = sorted(min(cut, len(whole) - 1) for cut in cuts)
    for part in (whole[a:b] for a, b in zip([0, *places], [*places, len(whole)], strict=True)):
        if select.select([wire], [], [], 0)[0]:
            with pytest.raises(Incomplete):
                wire.receive()
        theirs.sendall(part)
    assert wire.receive() == said
    theirs.sendall(FRAME)
    assert wire.receive() == ("frame", None)
    theirs.close()
    with pytest.raises(EOFError):
        wire.receive()
    wire.close()


def test_a_game_that_does_not_read_blocks_neither_a_command_nor_the_end(ends):
    wire, _ = ends
    begun = time.monotonic()
    wire.send(("step", BIG, 1.0))
    wire.close()
    assert time.monotonic() - begun < 30.0


def test_a_game_that_reads_slowly_gets_all(ends):
    wire, theirs = ends
    wire.send(("step", BIG, 1.0))
    assert theirs.recv(1) == MESSAGE
    assert Connection(theirs.fileno()).recv() == ("step", BIG, 1.0)
    theirs.detach()


@pytest.mark.process
def test_a_game_that_stops_while_it_sends_is_replaced_in_time(tmp_path):
    bridge = GarbageBridge(details=BIG, with_details=True, step_deadline_s=1.0)
    pool = Pool(bridge, tmp_path, 1, 1, HostConfig(isolation="subprocess", restarts=0))
    # A host that waits forever would wait for the game, which this ends.
    rescue = threading.Timer(60.0, lambda: os.kill(pid, signal.SIGKILL))
    pool.launch()
    pool.recv()
    handle = pool._pooled[0].game.handle
    pid = handle.pid
    pool.reset(0, [0], [Start(bridge.spec.state_space.state(0), 0)])
    while pool.recv(timeout_s=60.0)[0].kind != "reset":
        pass
    pool.send(0, {"move": [3]})
    assert select.select([handle.waitable], [], [], 60.0)[0]
    os.kill(pid, signal.SIGSTOP)  # it has filled the socket
    rescue.start()
    (event,) = pool.recv()
    rescue.cancel()
    assert (event.kind, event.phase) == ("failed", "step")
    assert event.reason.startswith("no answer to step within 1 s")
    pool.close()


def test_a_byte_that_begins_no_message_ends_the_connection(ends):
    wire, theirs = ends
    theirs.sendall(b"x" + bytes(100))
    with pytest.raises(EOFError):
        wire.receive()


def test_a_connection_that_ends_within_a_message_is_closed_not_incomplete(ends):
    wire, theirs = ends
    theirs.sendall(MESSAGE + b"\0\0")
    theirs.close()
    with pytest.raises(EOFError):
        wire.receive()
