# SPDX-License-Identifier: BSD-3-Clause
"""RecSync's own server, the RecCeiver, and its own client inside an IOC, where this machine has them.

EBPFMON_RECCEIVER names the folder server/ of RecSync, EBPFMON_RECCEIVER_PYTHON a Python with Twisted and pyCFClient,
EBPFMON_RECCASTER the program demo, an IOC with RecSync's client.
"""
import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

from . import loopback
from .process import Process

PORT = 5049  # RecSync's client knows no other one
CASTER = os.environ.get("EBPFMON_RECCASTER")
_FOLDER = os.environ.get("EBPFMON_RECCEIVER")
_PYTHON = os.environ.get("EBPFMON_RECCEIVER_PYTHON", sys.executable)

# The names are those that its plugin db uses.
_TABLES = """
CREATE TABLE server (id INTEGER PRIMARY KEY, owner INTEGER, hostname TEXT NOT NULL, port INTEGER NOT NULL);
CREATE TABLE servinfo (id INTEGER PRIMARY KEY, host INTEGER NOT NULL REFERENCES server(id) ON DELETE CASCADE,
                       key TEXT NOT NULL, value TEXT NOT NULL, UNIQUE(host, key));
CREATE TABLE record (pkey INTEGER PRIMARY KEY, id INTEGER NOT NULL, record_type TEXT,
                     host INTEGER NOT NULL REFERENCES server(id) ON DELETE CASCADE, UNIQUE(id, host));
CREATE TABLE record_name (id INTEGER PRIMARY KEY, rec INTEGER NOT NULL REFERENCES record(pkey) ON DELETE CASCADE,
                          record_name TEXT NOT NULL, prim INTEGER NOT NULL, UNIQUE(rec, record_name));
CREATE TABLE recinfo (id INTEGER PRIMARY KEY, rec INTEGER NOT NULL REFERENCES record(pkey) ON DELETE CASCADE,
                      key TEXT NOT NULL, value TEXT NOT NULL, UNIQUE(rec, key));
"""

_serial = itertools.count(1)
Stored = namedtuple("Stored", "variables records")  # names → values; names of records → StoredRecord
StoredRecord = namedtuple("StoredRecord", "type aliases infos")


def missing():
    """What this machine lacks to run a RecCeiver. None: nothing."""
    if not _FOLDER:
        return "no RecCeiver: EBPFMON_RECCEIVER names the folder server/ of RecSync"
    tried = subprocess.run([_PYTHON, "-c", "import twisted, channelfinder"], check=False, stderr=subprocess.DEVNULL)
    return f"{_PYTHON} has no Twisted or no pyCFClient" if tried.returncode else None


class RecCeiver:
    """A RecCeiver that keeps all in a database of SQLite. "settings": lines of its section [recceiver]."""

    def __init__(self, tmp, settings=""):
        self._database = tmp / f"recceiver{next(_serial)}.db"
        with sqlite3.connect(self._database) as made:
            made.executescript(_TABLES)
        conf = tmp / "recceiver.conf"
        conf.write_text(f"[recceiver]\nloglevel = DEBUG\naddrlist = 127.255.255.255:{PORT}\nbind = 127.0.0.1:0\n"
                        f"announceInterval = 0.5\nprocs = show, db:lite\n{settings}\n"
                        f"[lite]\ndbtype = sqlite3\ndbname = {self._database}\nidkey = 42\n")
        twistd = shutil.which("twistd", path=Path(_PYTHON).parent)
        environment = {**loopback.environment(), "PYTHONPATH": _FOLDER, "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = Process([_PYTHON, twistd, "-n", "--pidfile=", "recceiver", "-f", conf], environment, cwd=_FOLDER)

    def stored(self):
        """What it has now: one Stored for each connection."""
        with sqlite3.connect(self._database) as db:
            return [self._read(db, number) for number, in db.execute("SELECT id FROM server ORDER BY id")]

    @staticmethod
    def _read(db, number):
        variables = dict(db.execute("SELECT key, value FROM servinfo WHERE host=?", (number,)))
        records = {}
        for key, kind in db.execute("SELECT pkey, record_type FROM record WHERE host=?", (number,)):
            names = db.execute("SELECT record_name, prim FROM record_name WHERE rec=?", (key,)).fetchall()
            infos = dict(db.execute("SELECT key, value FROM recinfo WHERE rec=?", (key,)))
            name, = [n for n, first in names if first]
            assert name not in records, f"{name} twice"
            records[name] = StoredRecord(kind, {n for n, first in names if not first}, infos)
        return Stored(variables, records)

    def of(self, name):
        """What it has of this IOC; None: nothing, or more than one connection."""
        found = [s for s in self.stored() if s.variables.get("IOCNAME") == name]
        return found[0] if len(found) == 1 else None

    def output(self):
        return self.process.output(200)

    def stop(self):
        if self.process.running:
            self.process.signal(15)
            self.process.wait()
        self.process.close()

    def kill(self):
        self.process.signal(9)
        self.process.wait()
