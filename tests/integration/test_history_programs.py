# SPDX-License-Identifier: BSD-3-Clause
"""What a history keeps of a program that writes often, and damaged files in ebpfMonReplay."""
import contextlib
import json
import os
import re
import sqlite3
import subprocess

from tests.harness import ca
from tests.harness.wait import until

from .test_history import DATABASE, REPLAY, keep, rows  # noqa: F401  a fixture, too


def test_a_program_that_writes_often(keep, new_ioc, tmp_path):  # noqa: F811
    """By a rule its puts are automatic: one run, in the table of these, and no row of people. What it may not write stays one by one."""
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"rules": [{"name": "loop", "pv": "*SET3", "min": 0, "max": 1000, "automatic": True}]}))
    monitor, ioc = keep(rules=rules), new_ioc(DATABASE).start()
    monitor.wait_ioc(ioc)
    loop = ca.pv(ioc.prefix + "SET3")
    for value in range(60):
        loop.put(value, wait=True)
    loop.put(2000, wait=True)
    ioc.put("SET2", 7)
    until(lambda: [pv.removeprefix(ioc.prefix) for pv in monitor.list("PUT_PVS")] == ["SET2", "SET3"], 10, lambda: monitor.list("PUT_PVS"))
    until(lambda: ioc.prefix + "SET3" in monitor.list("AUTO_PUT_PVS"), 10, lambda: monitor.list("AUTO_PUT_PVS"))
    monitor.process.send("exit")
    monitor.process.wait(20)
    assert [(r["value"], r.get("n", 1)) for r in rows(keep.file, "-a", ioc.prefix + "SET3") if r["kind"] == "put"] == [("59", 60), ("2000", 1)]


def test_replay_of_damaged_files(keep):  # noqa: F811
    """One without rows, and one of which only the puts cannot be read."""
    monitor = keep()
    monitor.process.send("exit")
    monitor.process.wait(20)
    for i in range(2):
        with contextlib.closing(sqlite3.connect(keep.file)) as base:
            base.execute("INSERT INTO rows (time, first, kind, automatic, pv, value, n) WITH RECURSIVE r(i) AS (SELECT 1 UNION SELECT i + 1 FROM r "
                         "WHERE i < 2000) SELECT i, i, 'put', 0, 'A:PV', hex(zeroblob(100)), 1 FROM r" if i else "DELETE FROM rows")
            base.commit()
            base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            root = base.execute("SELECT rootpage FROM sqlite_master WHERE name = 'rows'").fetchone()[0]
            size = base.execute("PRAGMA page_size").fetchone()[0]
        if i:
            with keep.file.open("r+b") as file:
                file.seek((root - 1) * size)
                file.write(os.urandom(size))
        done = subprocess.run([REPLAY, keep.file], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
        assert done.returncode in (1, 2) and re.search("damaged|malformed", done.stderr), done
