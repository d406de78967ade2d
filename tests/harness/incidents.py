# SPDX-License-Identifier: BSD-3-Clause
"""Incidents for the history, of which only who makes them knows time, value and culprit."""
import contextlib
import os
import random
import signal
import sqlite3

from . import db
from .putters import Putter
from .wait import until

FAR = db.READY + db.record("ao", "IN", FLNK="$(P)NEXT") + db.record("calcout", "NEXT", CALC="A+1", INPA="$(P)IN", OUT="$(P)END PP") + \
    db.record("ao", "END")
WRITTEN = "".join(db.record("ao", name) for name in ("WRONG", "ODD", "OFF"))  # in the IOC near, beside SET, which leads to IN


def query(file, sql):
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10)) as base:
        return base.execute(sql).fetchall()


class Incidents:
    """In the IOCs far, near and lost; "unseen" is for a write while nobody watches."""
    def __init__(self, far, near, lost):
        self.far, self.near, self.lost, self.putter = far, near, lost, Putter()
        self.wrong, self.cause, self.odd, self.refused, self.unseen = random.Random().sample(range(10000, 99999), 5)

    def write(self, person, record, value, kind="cacb"):
        self.putter.put(kind, os.getuid(), person, self.near.port, self.near.prefix + record, value)

    def make(self, monitor, file):
        """Returns when the history has the last one."""
        for ioc in (self.far, self.near, self.lost):
            monitor.wait_ioc(ioc)
        for person, record, value in [("mila", "WRONG", 1), ("jonas", "WRONG", self.wrong), ("mila", "WRONG", 2), ("mila", "ODD", 3),
                                      ("jonas", "ODD", self.odd), ("ida", "SET", self.cause)]:
            self.write(person, record, value)
        until(lambda: self.far.get("END") == 2 * self.cause + 1, 20, "the effect")
        self.near.put("OFF.DISP", 1)
        self.write("otto", "OFF", self.refused, kind="ca")
        os.kill(self.lost.pid, signal.SIGSEGV)
        until(lambda: query(file, "SELECT 1 FROM rows WHERE kind = 'event' AND value LIKE '%ended%'"), 30, "the end of the IOC")
        until(lambda: query(file, f"SELECT 1 FROM rows WHERE pv = '{self.far.prefix}END'"), 20,
              lambda: query(file, "SELECT time, kind, pv, value FROM rows"))
