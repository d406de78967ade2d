# SPDX-License-Identifier: BSD-3-Clause
"""The corpus of puts with rings that are too small: events of IOCs and packets are lost while the monitor is stopped,
while servers are stopped, and before servers are killed. Each line of the log belongs to one put, with its value, and
with a result that is right or unknown. Missing puts are counted as lost."""
import os

import pytest
from tests.harness import badlink, corpus
from tests.harness.corpuspeer import KINDS, Peer, put_in_turn, put_to_standing, restart, wait_watched
from tests.harness.preload import preload
from tests.harness.putlog import PutLog
from tests.harness.soak import size, soak
from tests.harness.wait import settled, stays_false

SERVERS = size(["softIocPVA", "caproto"], list(KINDS))
EVENTS, PACKETS = 64, 256  # KiB; the smallest size
ROUNDS, STILL = size(1, 3), size(1, 6)
LAST = 14  # s; a put that only packets show is published 10 s after its circuit was closed
pytestmark = soak


@pytest.fixture
def log(tmp_path):
    return PutLog(tmp_path / "puts.json")


@pytest.fixture
def peers(tmp_path, repeater):
    made = []
    with badlink.BadLink(**size({}, {"loss": 0.01, "reorder": 0.05, "dup": 0.01}), seed=size(1, os.getpid())) as link:
        bytewise = preload(tmp_path, "bytewise")
        try:
            # one IOC stays: else packets of this namespace would not be read while its IOCs are restarted
            made.append(Peer(tmp_path, link, "softIoc", {}))
            made += [Peer(tmp_path, link, kind, bytewise) for kind in SERVERS]
            for peer in made:
                peer.start()
            yield made[1:]
        finally:
            for peer in made:
                peer.discard()


def put_all(monitor, peers, log, n):
    put_in_turn(peers, n)
    monitor.process.halt()
    for step in range(1, 5):
        put_in_turn(peers, n + step)
    monitor.process.go_on()
    put_in_turn(peers, n + 5)
    settled(lambda: len(log.all()), 20, quiet=3)
    put_to_standing(peers, n + 6, lambda: stays_false(lambda: False, STILL))
    monitor.process.halt()
    put_in_turn(peers, n + 7)
    restart(peers)
    monitor.process.go_on()
    wait_watched(monitor, peers)
    put_in_turn(peers, n + 8)


def test_lines_are_puts(new_monitor, peers, log):
    monitor = new_monitor(before=[f"ebpfMonConfigure 0 0 {EVENTS} 0 {PACKETS}", log.command()]).start()
    wait_watched(monitor, peers)
    for peer in peers:
        peer.open()
    for n in range(0, 10 * ROUNDS, 10):
        put_all(monitor, peers, log, n)
    settled(lambda: len(log.all()), 20, quiet=LAST)
    wrong, inside, outside = [], 0, 0
    for peer in peers:
        more, missing = peer.judge_lossy(log)
        wrong += more
        if peer.kind in corpus.OF_BASE:
            inside += len(missing)
        else:
            outside += len(missing)
    assert not wrong, f"{len(wrong)} lines of {len(log.all())}\n" + "\n".join(wrong[:20])
    assert 0 < inside <= monitor.losses()["event ring full"] and 0 < outside
    assert monitor.get("PACKET_LOST_CNT") > 0 and monitor.get("AUDIT_CNT") == 0, monitor.text("AUDIT")
