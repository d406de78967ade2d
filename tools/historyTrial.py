#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes a file of the history with a simulated week, and times what ebpfMonHistory needs for its questions.

    tools/historyTrial.py [ROWS [FILE]]     default: 10,000,000 rows, 4 GB in a temporary folder, which is removed; FILE stays, and is
                                            only made if it is not there
"""
import os
import pathlib
import random
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
ASK = TOP / "bin" / os.environ.get("EPICS_HOST_ARCH", "linux-x86_64") / "ebpfMonHistory"
WEEK = 7 * 86400 * 10**9
TREE = "".join(f"      {i}.0 us    FLNK > RING:REC{i} (calcout) = {i}\n" for i in range(8))
COLUMNS = "time, kind, automatic, ioc, pv, value, old, user, host, peer, who, origin, result, n, first, chain, source, tree, trace"


def schema():
    folder = TOP / "ebpfMonModules" / "history"
    failed = re.search(r'define EBPFMON_HISTORY_FAILED (".*")', (folder / "historyStore.h").read_text())[1]
    source = (folder / "historyStore.c").read_text().replace("EBPFMON_HISTORY_FAILED", failed)
    found = re.search(r"schema\[\] =\n(.*?);\n", source, re.S)[1]
    version = re.search(r"define VERSION (\d+)", source)[1]
    return "".join(re.findall(r'"(.*?)"', found)) + f"PRAGMA application_id = 0x65426d48; PRAGMA user_version = {version};"


def rows(count, begin):
    """Six of ten rows are puts of people, three of links that follow from one of these; and chains, and figures of minutes."""
    choice = random.Random(1)
    chain = None
    for i in range(count):
        at = begin + WEEK * i // count
        ioc, pv = f"ioc{i % 20}", f"RING:SECTOR{choice.randrange(20)}:PV{choice.randrange(200)}"
        user, host = f"user{choice.randrange(40)}", f"console{choice.randrange(9)}"
        kind = i % 10
        if kind < 6:
            chain = f"{at:016x}.{i % 4000:x}"
            yield (at, "put", 0, ioc, pv, str(i), str(i - 1), user, host, f"10.0.0.7:{i % 60000}", f"{user}@{host} caput[{i % 9999}]",
                   f"CA 10.0.0.7:{i % 60000}", "ok", 1, at, chain, None, None, f"{choice.randrange(1 << 128):032x}")
        elif kind < 9:
            yield (at, "put", 1, ioc, pv, str(i), None, user, host, None, f"{user}@{host}", f"link {pv}:L.OUT, chain of {pv}:SET, put by "
                   f"{user}@{host}", "ok", 1, at, None, chain, None, None)
        elif i % 100 == 9:
            yield (at, "chain", 1, ioc, pv, "12.000 ms, 8 records", None, None, None, None, None, None, None, 1, at, f"{at:016x}.1", None, TREE, None)
        else:
            yield (at, "minute", 1, ioc, None, f'{{"cpu":{choice.random():.3f},"memory":30,"processed_per_s":{choice.randrange(900)}}}', None, None,
                   None, None, None, None, None, 1, at, None, None, None, None)


def ask(file, *words, status=0):
    begin, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    got = subprocess.run([ASK, "-d", file, *words], capture_output=True, text=True, check=False)
    took, now = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    print(f"{took:7.3f} s, CPU {cpu:6.3f} s  {len(got.stdout.splitlines()):6} lines  ebpfMonHistory {' '.join(words)}"[:150])
    assert got.returncode == status, got.stderr


def make(file, count):
    """The indexes come last, which is much faster."""
    indexes = [s for s in schema().split(";") if s.startswith("CREATE INDEX")]
    start = time.monotonic()
    base = sqlite3.connect(file)
    base.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000;" +
                       ";".join(s for s in schema().split(";") if s not in indexes))
    base.executemany(f"INSERT INTO rows ({COLUMNS}) VALUES ({','.join('?' * 19)})", rows(count, time.time_ns() - WEEK))
    base.commit()
    base.executescript(";".join(indexes) + "; PRAGMA journal_mode = WAL")
    base.close()
    print(f"{count} rows in {time.monotonic() - start:.0f} s, {file.stat().st_size / 1e6:.0f} MB, {file.stat().st_size / count:.0f} bytes a row")


def local(ns):
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ns / 1e9))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else folder + "/history.sqlite")
        if not file.exists():
            make(file, count)
        base = sqlite3.connect(file)
        last, pv = base.execute("SELECT time, pv FROM rows WHERE automatic = 1 AND kind = 'put' ORDER BY time DESC LIMIT 1").fetchone()
        base.close()
        middle = [local(last - WEEK // 2 + s * 10**9) for s in (0, 600)]
        ask(file, "-f", middle[0], "-t", middle[1])
        ask(file, "RING:SECTOR7:PV11")
        ask(file, "RING:SECTOR7:PV1*", "-f", middle[0], "-t", middle[1])
        ask(file, "RING:*:PV11")
        ask(file, "NOWHERE:*", status=1)
        ask(file, "-u", "user7")
        ask(file, "-u", "?obody", status=1)
        ask(file, "-k", "chain", "-n", "20")
        ask(file, "-k", "minute", "-i", "ioc9", "-n", "20")
        ask(file, "why", pv, local(last + 10**9))
        ask(file, "why", "RING:SECTOR7:PV11", middle[0], "--json")
        ask(file, "report", *middle)
        ask(file, "report", local(last - WEEK // 7), local(last))


main()
