# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of server × type × way of putting × accepted, refused, disabled, while everything is bad at once: each TCP
segment has one byte, in both directions; frames are lost, doubled and overtake each other; servers stand still for more
than 5 s with puts in their queues, and are killed and started again. The log has what was sent, each put once, in the order
of its PV, with the result that the server told its client."""
import json
import os
import signal
import subprocess
import sys

import pytest
from tests.harness import badlink, corpus, paths
from tests.harness.far import FarIoc, there
from tests.harness.putlog import PutLog
from tests.harness.soak import size, soak
from tests.harness.wait import settled, stays_false, until

PROGRAM = paths.PROGRAMS / "peer_ioc.py"
# kind of server → the protocols by which it is written to
KINDS = {"softIoc": ["ca"], "softIocPVA": ["ca", "pva"], "pvxs": ["ca", "pva"], "softioc": ["ca", "pva"],
         "caproto": ["ca"], "pcaspy": ["ca"], "p4p": ["pva"]}
STILL = 6   # s; the 5 s, and more than any patience of the monitor but for ends of connections
ROUNDS = size(1, 4)
pytestmark = soak


@pytest.fixture(scope="module")
def bytewise(tmp_path_factory):
    """The environment of programs whose TCP segments have one byte each."""
    library = tmp_path_factory.mktemp("lib") / "bytewise.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, paths.TESTS / "harness" / "bytewise.c", "-ldl"],
                   check=True)
    return {"LD_PRELOAD": str(library)}


class Peer:
    """One server, and its clients."""

    def __init__(self, tmp, link, kind, environ):
        self.kind, self.link, self.environ = kind, link, environ
        acf = tmp / f"{kind}.acf"
        acf.write_text(corpus.ACF)
        of_base = {"db": corpus.RECORDS, "kind": kind, "acf": acf}
        other = {"kind": "pythonSoftIOC", "files": [PROGRAM, kind] + [link.addrB] * (kind == "caproto")}
        self.ioc = FarIoc(tmp, link, environ=environ, **(other if kind in ("softioc", "caproto", "pcaspy", "p4p") else
                                                        of_base))
        self.clients, self.truth = {}, []  # [(protocol, put, answer)]

    def start(self):
        self.ioc.start()
        return self

    def open(self):
        for protocol in KINDS[self.kind]:
            self.clients[protocol] = there(self.link.a, [sys.executable, "-m", "tests.programs.put_corpus", protocol,
                                                         self.link.addrB, self.ioc.port], {**os.environ, **self.environ})
            self.clients[protocol].wait_line("ready")

    def begin(self, n):
        """All clients put."""
        self.began = {p: (corpus.by_ca if p == "ca" else corpus.by_pva)(self.kind, n) for p in self.clients}
        for protocol, puts in self.began.items():
            self.clients[protocol].send(json.dumps([(self.ioc.prefix + p.record, *p[1:]) for p in puts]))

    def finish(self):
        for protocol, puts in self.began.items():
            answers = json.loads(self.clients[protocol].wait_line("[", 60))
            self.truth += [(protocol, put, answer) for put, answer in zip(puts, answers, strict=True)]

    def leave(self):
        """Clients notice that their server is gone. A PVA client does so by itself."""
        if "ca" in self.clients:
            self.clients["ca"].send("[]")
            self.clients["ca"].wait_line("gone", 60)

    def judge(self, log):
        """What is wrong in the log."""
        lines, wrong = log.of(self.ioc.prefix), []
        for protocol in self.clients:
            puts = [(p, a) for q, p, a in self.truth if q == protocol]
            for record in dict.fromkeys(p.record for p, _ in puts):
                sent = [x for x in puts if x[0].record == record]
                seen = [o for o in lines if (o["pv"], o["through"]) == (self.ioc.prefix + record, protocol.upper())]
                wrong += [w for i, (p, a) in enumerate(sent)
                          if (w := corpus.wrong_line(self.kind, p, a, seen[i] if i < len(seen) else None))]
                wrong += [f"more than was sent: {o}" for o in seen[len(sent):]]
        known = {self.ioc.prefix + p.record for _, p, _ in self.truth}
        return wrong + [f"nobody wrote {o}" for o in lines if o["pv"] not in known]

    def discard(self):
        for client in self.clients.values():
            client.close()
        self.ioc.process.signal(signal.SIGCONT)
        self.ioc.discard()


@pytest.fixture(scope="module")
def peers(tmp_path_factory, bytewise, repeater):
    tmp, made = tmp_path_factory.mktemp("far"), []
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


def wait_watched(monitor, peers):
    for peer in peers:
        if peer.kind in corpus.OF_BASE:
            monitor.wait_ioc(peer.ioc)


def put_in_turn(peers, n):
    """The clients of one server after the other: all at once would be more frames than the link can carry."""
    for peer in peers:
        peer.begin(n)
        peer.finish()


@pytest.fixture(scope="module")
def done(module_monitor, peers, log):
    """Runs it all. All servers stand still, and start again, at the same time."""
    monitor = module_monitor(before=[log.command()]).start()
    wait_watched(monitor, peers)
    for peer in peers:
        peer.open()
    for n in range(0, 10 * ROUNDS, 10):
        for step in range(size(1, 2)):
            put_in_turn(peers, n + step)
        logged = settled(lambda: len(log.all()), 20, quiet=3)
        for peer in peers:
            peer.ioc.process.signal(signal.SIGSTOP)
        for peer in peers:
            peer.begin(n + 2)
        try:
            # of servers that are no watched IOCs, puts are seen when they are sent
            inside = tuple(peer.ioc.prefix for peer in peers if peer.kind in corpus.OF_BASE)
            before = len(log.of(inside))
            assert stays_false(lambda: len(log.of(inside)) > before, STILL), log.of(inside)[before:]
        finally:
            for peer in peers:
                peer.ioc.process.signal(signal.SIGCONT)
        for peer in peers:
            peer.finish()
        until(lambda: len(log.all()) > logged, 20, "puts after they stood still")
        settled(lambda: len(log.all()), 20, quiet=3)
        for peer in peers:
            peer.ioc.kill()
        for peer in peers:
            peer.leave()
            peer.start()
        wait_watched(monitor, peers)
        put_in_turn(peers, n + 3)
    settled(lambda: len(log.all()), 20, quiet=4)  # what nobody sent would come after 2.5 s
    return monitor


@pytest.mark.parametrize("kind", KINDS)
def test_log_equals_truth(done, peers, log, kind):
    peer = next(p for p in peers if p.kind == kind)
    wrong = peer.judge(log)
    assert not wrong, f"{len(wrong)} of {len(peer.truth)} puts\n" + "\n".join(wrong[:20])


def test_nothing_lost(done, peers):
    """The link did its worst, and no packet is missing."""
    counts = peers[0].link.counts()
    assert counts["dropped"] > 50 and counts["reordered"] > 200 and counts["duplicated"] > 50, counts
    bytes_sent = sum(len(p.truth) for p in peers) * 16
    assert counts["forwarded"] > bytes_sent, "a frame for each byte"
    assert done.losses() == {} and done.get("AUDIT_CNT") == 0, done.text("AUDIT")
