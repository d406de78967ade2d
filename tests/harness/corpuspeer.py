# SPDX-License-Identifier: BSD-3-Clause
"""The servers and clients of the corpus of puts (corpus.py), and the comparison of a log with the puts."""
import json
import os
import subprocess
import sys

from . import corpus, paths
from .far import FarIoc, there

PROGRAM = paths.PROGRAMS / "peer_ioc.py"
# kind of server → the protocols of the puts
KINDS = {"softIoc": ["ca"], "softIocPVA": ["ca", "pva"], "pvxs": ["ca", "pva"], "softioc": ["ca", "pva"],
         "caproto": ["ca"], "pcaspy": ["ca"], "p4p": ["pva"]}


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
        """Waits until the clients notice that their server has ended. PVA clients need no command for this."""
        if "ca" in self.clients:
            self.clients["ca"].send("[]")
            self.clients["ca"].wait_line("gone", 60)

    def _by_pv(self, log):
        """For each PV: the puts of one client with their answers, and the lines of the log."""
        lines = log.of(self.ioc.prefix)
        for protocol in self.clients:
            puts = [(p, a) for q, p, a in self.truth if q == protocol]
            for record in dict.fromkeys(p.record for p, _ in puts):
                yield ([x for x in puts if x[0].record == record],
                       [o for o in lines if (o["pv"], o["through"]) == (self.ioc.prefix + record, protocol.upper())])

    def _by_nobody(self, log):
        known = {self.ioc.prefix + p.record for _, p, _ in self.truth}
        return [f"nobody wrote {o}" for o in log.of(self.ioc.prefix) if o["pv"] not in known]

    def judge(self, log):
        """The texts of all faults in the log, if nothing was lost."""
        wrong = self._by_nobody(log)
        for sent, seen in self._by_pv(log):
            wrong += [w for i, (p, a) in enumerate(sent)
                      if (w := corpus.wrong_line(self.kind, p, a, seen[i] if i < len(seen) else None))]
            wrong += [f"more than was sent: {o}" for o in seen[len(sent):]]
        return wrong

    def judge_lossy(self, log):
        """The same, if events or packets may have been lost: each line is one of the puts, and none is there twice. Returns
        that, and the puts that are missing. The order is not judged: a put that only packets show has the time of its packet,
        which may have waited for a server that stood still."""
        wrong, missing = self._by_nobody(log), []
        for sent, seen in self._by_pv(log):
            left = list(sent)
            for line in seen:
                at = next((i for i, (p, a) in enumerate(left) if not corpus.wrong_line(self.kind, p, a, line, True)), None)
                if at is None:
                    wrong.append(f"not one of {[p for p, _ in left[:3]]}…: {line}")
                else:
                    del left[at]
            missing += left
        return wrong, missing

    def discard(self):
        for client in self.clients.values():
            client.close()
        self.ioc.process.go_on()
        self.ioc.discard()


def put_in_turn(peers, n):
    """Puts of the clients of one server after the other. All at once would be too many frames for a bad link."""
    for peer in peers:
        peer.begin(n)
        peer.finish()


def put_to_standing(peers, n, while_they_stand):
    """Stops all servers, makes puts that stay in their queues, and continues the servers. Each server then answers its
    clients."""
    for peer in peers:
        peer.ioc.process.halt()
    try:
        for peer in peers:
            peer.begin(n)
        while_they_stand()
    finally:
        for peer in peers:
            peer.ioc.process.go_on()
    for peer in peers:
        peer.finish()


def restart(peers):
    """Kills and restarts all servers. Their clients notice it."""
    for peer in peers:
        peer.ioc.kill()
    for peer in peers:
        peer.leave()
        peer.start()


def of_base(peers):
    """The prefixes of the PVs of watched IOCs. Puts to other servers are seen when they are sent."""
    return tuple(peer.ioc.prefix for peer in peers if peer.kind in corpus.OF_BASE)


def wait_watched(monitor, peers):
    for peer in peers:
        if peer.kind in corpus.OF_BASE:
            monitor.wait_ioc(peer.ioc)
