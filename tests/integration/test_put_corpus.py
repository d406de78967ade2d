# SPDX-License-Identifier: BSD-3-Clause
"""Puts to every kind of server, of every type, in every way, accepted, refused and disabled, while many faults happen
at the same time: each TCP segment has one byte, in both directions; frames are lost, repeated and reordered; servers
are stopped for more than 5 s with puts in their queues, and are killed and started again. The log has each put once,
with the value that was sent, in the order of its PV, and with the result that the server told its client."""
import os

import pytest
from tests.harness import badlink
from tests.harness.corpuspeer import KINDS, Peer, of_base, put_in_turn, put_to_standing, restart, wait_watched
from tests.harness.preload import preload
from tests.harness.putlog import PutLog
from tests.harness.soak import size, soak
from tests.harness.wait import settled, stays_false, until

STILL = 6   # s; longer than all waits of the monitor, except the wait after the end of a connection
ROUNDS = size(1, 4)
pytestmark = soak


@pytest.fixture(scope="module")
def peers(tmp_path_factory, repeater):
    tmp, made = tmp_path_factory.mktemp("far"), []
    bytewise = preload(tmp, "bytewise")
    with badlink.BadLink(loss=0.01, reorder=0.05, dup=0.01, seed=size(1, os.getpid())) as link:
        try:
            made += [Peer(tmp, link, kind, bytewise) for kind in KINDS]
            for peer in made:
                peer.start()
            yield made
        finally:
            for peer in made:
                peer.discard()


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return PutLog(tmp_path_factory.mktemp("logs") / "puts.json")


@pytest.fixture(scope="module")
def done(module_monitor, peers, log):
    """Runs all puts. All servers are stopped, and restarted, at the same time."""
    monitor = module_monitor(before=[log.command()]).start()
    wait_watched(monitor, peers)
    monitor.wait("PACKET_STATE", lambda state: state == 1, 20)  # puts to servers that are not Base's are seen in packets alone
    for peer in peers:
        peer.open()
    for n in range(0, 10 * ROUNDS, 10):
        for step in range(size(1, 2)):
            put_in_turn(peers, n + step)
        logged = settled(lambda: len(log.all()), 20, quiet=3)

        def nothing_is_logged():
            before = len(log.of(of_base(peers)))
            assert stays_false(lambda: len(log.of(of_base(peers))) > before, STILL), log.of(of_base(peers))[before:]

        put_to_standing(peers, n + 2, nothing_is_logged)
        until(lambda: len(log.all()) > logged, 20, "puts after they stood still")
        settled(lambda: len(log.all()), 20, quiet=3)
        restart(peers)
        wait_watched(monitor, peers)
        put_in_turn(peers, n + 3)
    settled(lambda: len(log.all()), 20, quiet=4)  # a line of a put that nobody sent would come after 2.5 s
    return monitor


@pytest.mark.parametrize("kind", KINDS)
def test_log_equals_truth(done, peers, log, kind):
    peer = next(p for p in peers if p.kind == kind)
    wrong = peer.judge(log)
    assert not wrong, f"{len(wrong)} of {len(peer.truth)} puts\n" + "\n".join(wrong[:20])


def test_nothing_lost(done, peers):
    """The link lost, repeated and reordered many frames, and the monitor missed no packet."""
    counts = peers[0].link.counts()
    assert counts["dropped"] > 50 and counts["reordered"] > 200 and counts["duplicated"] > 50, counts
    bytes_sent = sum(len(p.truth) for p in peers) * 16
    assert counts["forwarded"] > bytes_sent, "a frame for each byte"
    assert done.losses() == {} and done.get("AUDIT_CNT") == 0, done.text("AUDIT")
