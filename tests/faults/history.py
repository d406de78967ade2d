# SPDX-License-Identifier: BSD-3-Clause
"""Trials of the history that take too long for make check: tools/historyTrials.sh runs them.

    kill [N]        a flood of puts, and SIGKILL of the monitor at a random moment, N times (200): no row is wrong, or there twice,
                    each put of before the last second is there, and the file is whole
    power [N]       the same with a loss of power of the disk (ext4 in a file, FS_IOC_SHUTDOWN), N times (20): what is there is the
                    begin of what was written
    cost [ROUNDS]   own CPU time and that of an IOC with the load of a site (tests/bench/site.py), with the history and without (5)
    rate [SECONDS]  one client writes 10,000 values a second (60), 100 a second as long, and ten seconds as many as it can up to
                    60,000. What the history has not, is counted
    day [FOLDER]    seven incidents, of which only this script knows time, value and culprit. What do the history, caPutLog and an
                    archiver say of them? FOLDER: where tools/modules.sh has built caPutLog
"""
import fcntl
import os
import random
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime
from pathlib import Path

from tests.modules import puts  # the first one: enters a network namespace, before a thread starts processes

from tests.bench import site
from tests.harness import ca, db, incidents, loopback, paths, rawca
from tests.harness.incidents import query
from tests.harness.ioc import Ioc
from tests.harness.monitor import Monitor
from tests.harness.process import Process, alive
from tests.harness.wait import until

ASK = paths.BUILT / "bin" / paths.ARCH / "ebpfMonHistory"
SHUTDOWN, NO_FLUSH = 0x8004587d, 2  # FS_IOC_SHUTDOWN of linux/fs.h; EXT4_GOING_FLAGS_NOLOGFLUSH of fs/ext4/ext4.h
FLOOD = db.READY + db.record("longout", "N") + db.record("calcout", "TICK", SCAN=".1 second", CALC="VAL+1", OUT="$(P)TOCK PP") + \
    db.record("ao", "TOCK")


class Flood:
    """One client that writes 1, 2, 3 …, each after the answer to the one before."""
    def __init__(self, ioc):
        self.client, self.pv, self.sent, self.rest = rawca.RawCa(ioc.port, "flood", "here"), ioc.prefix + "N", 0, threading.Event()
        self.times, self.isEnding = [], False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.isEnding:
            if self.rest.wait(1):
                self.client.put(self.pv, rawca.LONG, [self.sent + 1])
                self.sent += 1
                self.times.append(time.time())


def judge(file, flood):
    """No value is wrong or there twice, each follows from the one before, and the runs of the link are no more than it made."""
    assert query(file, "PRAGMA integrity_check") == [("ok",)]
    got = [(int(float(v)), int(float(o)), n, at / 1e9) for v, o, n, at in
           query(file, "SELECT value, coalesce(old, '0'), n, time FROM rows WHERE kind = 'put' AND pv LIKE '%:N' ORDER BY id")]
    values = [v for v, _, _, _ in got]
    assert values == sorted(set(values)), "a row is there twice, or in the wrong order"
    assert all(n == 1 and old == value - 1 for value, old, n, _ in got), "a row is wrong"
    assert not values or values[-1] <= flood.sent + 1
    bad = [v for v, _, _, at in got if not -1 < at - flood.times[min(v, len(flood.times)) - 1] < 1]
    assert not bad, f"times of {bad[:5]}"
    return values


def kill(tmp, rounds):
    ioc = Ioc(tmp, db=FLOOD).start()
    file, flood, choice, rows, kills = tmp / "history.sqlite", Flood(ioc), random.Random(1), 0, []
    monitor = Monitor(tmp, before=[f'ebpfMonHistoryKeep "{file}" 64 30'])
    for i in range(rounds):
        monitor.start()
        until(lambda: monitor.get("HISTORY_STATE") == 1, 20, "the history")
        monitor.wait_ioc(ioc)
        first = flood.sent + 1
        flood.rest.set()
        time.sleep(0.5 + 2 * choice.random())  # the random moment
        os.kill(monitor.process.pid, signal.SIGKILL)
        last = time.time()
        kills.append(last)
        monitor.process.wait(20)
        flood.rest.clear()
        values = judge(file, flood)
        must = {v for v in range(first, flood.sent + 1) if flood.times[v - 1] < last - 2}  # 0.5 s, and what a busy host takes
        assert not must - set(values), f"missing: {sorted(must - set(values))[:5]}"
        rows = len(values)
        if i % 20 == 19:
            print(f"{i + 1} kills, {rows} rows", flush=True)
    gaps = query(file, "SELECT count(*) FROM rows WHERE kind = 'gap' AND value LIKE '%without order%'")[0][0]
    oldest = query(file, "SELECT min(time) FROM rows")[0][0] / 1e9  # what was before, the file has not kept: its size is bounded
    kept = sum(at > oldest for at in kills[:-1])
    assert kept <= gaps <= kept + 1, f"{gaps} gaps after {kept} kills"
    print(f"{rounds} times SIGKILL while it wrote: {rows} rows, none wrong or there twice; the file is whole; {gaps} gaps are noted")


def power(tmp, rounds):
    ioc = Ioc(tmp, db=FLOOD).start()
    image, disk, flood, choice, last = tmp / "image", tmp / "disk", Flood(ioc), random.Random(2), 0
    disk.mkdir()
    with image.open("wb") as f:
        f.truncate(256 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    file = disk / "history.sqlite"
    monitor = Monitor(tmp, before=[f'ebpfMonHistoryKeep "{file}" 64 30'])
    for _ in range(rounds):
        subprocess.run(["mount", "-o", "loop", image, disk], check=True)
        if file.exists():
            before, last = last, judge(file, flood)[-1]
            assert last >= before, "what was there is gone"
        monitor.start()
        until(lambda: monitor.get("HISTORY_STATE") == 1, 20, "the history")
        monitor.wait_ioc(ioc)
        flood.rest.set()
        time.sleep(0.5 + 8 * choice.random())  # the random moment
        fd = os.open(disk, os.O_RDONLY)
        fcntl.ioctl(fd, SHUTDOWN, NO_FLUSH.to_bytes(4, "little"))
        os.close(fd)
        until(lambda: monitor.get("HISTORY_STATE") == 2, 20, "the monitor says so")
        flood.rest.clear()
        os.kill(monitor.process.pid, signal.SIGKILL)
        monitor.process.wait(20)
        subprocess.run(["umount", disk], check=True)
    subprocess.run(["mount", "-o", "loop", image, disk], check=True)
    rows = len(judge(file, flood))
    subprocess.run(["umount", disk], check=True)
    print(f"{rounds} times a loss of power while it wrote: {rows} of {flood.sent} rows, none wrong or there twice; the file is whole")


def cost(tmp, rounds):
    (tmp / "site.db").write_text(site.database())
    port, file = loopback.take_port(), tmp / "history.sqlite"
    ioc = Process([paths.BASE_BIN / "softIoc", "-d", tmp / "site.db"], loopback.server(port, IOC="bench"), cwd=tmp)
    ioc.command("dbgf BENCH:PUT0")
    clients = Process([sys.executable, "-m", "tests.bench.siteClients"], loopback.client(port), cwd=paths.TOP)
    clients.wait_line("ready", 60)
    kinds = {"without": [], "with": [f'ebpfMonHistoryKeep "{file}" 1024 30'],
             "with, and the last minutes": [f'ebpfMonHistoryKeep "{file}" 1024 30', f'ebpfMonHistoryRing "{tmp}" 64']}
    found, monitors = {kind: [] for kind in kinds}, {kind: Monitor(tmp, before=before, iocs="bench") for kind, before in kinds.items()}
    for _ in range(rounds):
        for kind, monitor in monitors.items():
            monitor.start()
            monitor.set_filter(LEVEL="chains")
            until(lambda: "bench" in monitor.list("IOC_NAMES"), 20, "the IOC")
            time.sleep(8)  # the first seconds cost more
            own, other, begin = site.cpu(monitor.process.pid), site.cpu(ioc.pid), time.monotonic()
            time.sleep(10)  # the length of the measurement
            took = (time.monotonic() - begin) * 1e7
            found[kind].append(((site.cpu(monitor.process.pid) - own) / took, (site.cpu(ioc.pid) - other) / took,
                                site.memory(monitor.process.pid)))
            monitor.process.send("exit")
            monitor.process.wait(20)
            ca.forget()  # nobody searches for its PVs
    print("| history | monitor, % of a core | IOC, % of a core | memory of the monitor, MiB |\n|---|---|---|---|")
    for kind, results in found.items():
        print(f"| {kind} |", " | ".join(f"{statistics.median(r[i] for r in results):.2f}" for i in range(3)), "|")
    print(f"Medians of {rounds} rounds of 10 s, load {os.getloadavg()[0]:.1f}; {query(file, 'SELECT count(*) FROM rows')[0][0]} rows")


def rate(tmp, seconds):
    ioc = Ioc(tmp, db=db.READY + db.record("longout", "N")).start()
    file, client = tmp / "history.sqlite", rawca.RawCa(ioc.port, "flood", "here")
    monitor = Monitor(tmp, before=[f'ebpfMonHistoryKeep "{file}" 1024 30']).start()
    until(lambda: monitor.get("HISTORY_STATE") == 1, 20, "the history")
    monitor.wait_ioc(ioc)
    sid, sent = client.sid(ioc.prefix + "N"), 0

    def count_lost():
        return sum(monitor.get(n) for n in ("HISTORY_LOST_CNT", "LOST_CNT"))

    def is_kept():
        return query(file, f"SELECT 1 FROM rows WHERE pv LIKE '%:N' AND value = '{sent}'")

    def put_last():
        """While there is no room, a put is lost, which is counted: then another one."""
        nonlocal sent
        sent, lost = sent + 1, count_lost()
        client.put(ioc.prefix + "N", rawca.LONG, [sent])
        until(lambda: is_kept() or count_lost() > lost, 20, "it is kept, or something is counted as lost")
        return is_kept()

    print("| puts a second | sent | kept | lost: counted by the history | by the monitor | not counted | CPU of the monitor, % of a core |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for puts, seconds in ((10000, seconds), (100, seconds), (60000, 10)):
        before, first = {n: monitor.get(n) for n in ("HISTORY_LOST_CNT", "LOST_CNT")}, sent
        used, begin = site.cpu(monitor.process.pid), time.monotonic()
        while (now := time.monotonic() - begin) < seconds:
            due = first + int(now * puts) - sent
            client.send(b"".join(rawca.write(sid, rawca.LONG, [sent + 1 + i]) for i in range(due)))
            sent += due
            time.sleep(0.01)  # the pace
        took, cpu = time.monotonic() - begin, site.cpu(monitor.process.pid) - used
        until(put_last, 60, "the last one is kept")
        values = [int(v) for v, in query(file, f"SELECT value FROM rows WHERE kind = 'put' AND pv LIKE '%:N' AND value + 0 > {first} "
                                               "ORDER BY time, id")]
        assert len(values) == len(set(values)), "a row is there twice"
        lost = {n: monitor.get(n) - v for n, v in before.items()}
        missing = sent - first - len(values)
        print(f"| {(sent - first) / took:.0f} | {sent - first} | {len(values)} | {lost['HISTORY_LOST_CNT']:.0f} | {lost['LOST_CNT']:.0f} | "
              f"{max(0, missing - sum(lost.values())):.0f} | {cpu / took / 1e7:.1f} |", flush=True)
        assert missing <= sum(lost.values()), "something is neither kept nor counted"
        assert lost["LOST_CNT"] or values == sorted(values), "the order is wrong"  # of what was lost, packets told
        assert puts > 100 or not missing, "100 a second are not kept"
        until(lambda: monitor.get("HOST_STATUS") == 0, 120, lambda: monitor.text("HOST_STATUS_MSG"))
    assert query(file, "PRAGMA integrity_check") == [("ok",)]
    print(f"{file.stat().st_size / 1e6:.0f} MB")


NEAR = db.READY + db.record("ao", "SET", FLNK="$(P)SEND") + db.record("calcout", "SEND", CALC="A*2", INPA="$(P)SET", OUT="FAR:IN CA PP") + \
    incidents.WRITTEN + \
    db.record("calcout", "CLOCK", SCAN=".2 second", CALC="VAL+1", OUT="$(P)SECONDS PP") + db.record("ao", "SECONDS")


def told():
    """The commands of the how-to: question → words, without the name of the program."""
    text = (paths.TOP / "documentation" / "use" / "history.md").read_text().split("### The morning after\n")[1].split("###")[0]
    return {q: shlex.split(c)[1:] for q, c in re.findall(r"(?m)^\| (\w.*\?) \| `(.*)` \|$", text)}


def grade(lines, *aspects):
    """Which of the aspects one line, or a few lines, tell: (name, pattern) …"""
    found = [name for name, pattern in aspects if re.search(pattern, "\n".join(lines))]
    return ", ".join(found) or "nothing"


def day(tmp, cache):
    logs = {name: puts.Log() for name in ("far", "near", "lost")}
    iocs, rules = {}, tmp / "rules.json"
    for name, text in (("far", incidents.FAR), ("near", NEAR), ("lost", db.READY + db.record("ao", "X"))):
        puts.TEXT = text.replace("FAR:", iocs["far"].prefix if iocs else "")
        iocs[name] = puts.start_ioc(cache, tmp, name, logs[name].socket.getsockname()[1])
    far, near, lost = iocs.values()
    pvs = [ioc.prefix + r for ioc, names in ((far, "IN END"), (near, "SET WRONG ODD OFF SECONDS"), (lost, "X")) for r in names.split()]
    archiver = Process([paths.BASE_BIN / "camonitor", *pvs], loopback.client(far.port, near.port, lost.port))
    rules.write_text(f'{{"rules": [{{"name": "noted", "pv": "{near.prefix}ODD", "users": ["mila"]}}]}}')
    file, made = tmp / "history.sqlite", incidents.Incidents(far, near, lost)

    def start():
        monitor = Monitor(tmp, before=[f'ebpfMonHistoryKeep "{file}" 64 30', f'ebpfMonRules "{rules}"']).start()
        until(lambda: monitor.get("HISTORY_STATE") == 1, 20, "the history")
        return monitor

    monitor = start()
    made.make(monitor, file)
    until(lambda: any(str(2 * made.cause + 1) in line for line in archiver.lines), 20, "the archiver has it")
    at = datetime.now()
    for _ in range(2):
        monitor.process.send("exit")
        monitor.process.wait(20)
        if _ == 0:
            made.write("mila", "WRONG", made.unseen)
            monitor = start()
    names = {"RING:*": near.prefix + "*", "VAC:VALVE3": far.prefix + "END", "VAC:PUMP1": near.prefix + "SECONDS", "400": str(made.wrong),
             "2026-11-28 03:10:05": at.strftime("%Y-%m-%d %H:%M:%S")}
    answers = [subprocess.run([ASK, "-d", file, *[names.get(w, w) for w in words]], capture_output=True, text=True).stdout.splitlines()
               for words in told().values()]
    putlog = [line for log in logs.values() for line in log.lines]
    archive = archiver.lines
    print(f"caPutLog has {len(putlog)} lines, the archiver {len(archive)}")
    wanted = [
        (("value", f"WRONG .*{made.wrong}"), ("who", f"(jonas.*WRONG.*{made.wrong}|WRONG.*{made.wrong}.*jonas)")),
        (("value", f"END .*{2 * made.cause + 1}"), ("the put that led to it", f"(ida.*SET.*{made.cause}|SET.*{made.cause}.*ida)"),
         ("that it did", f"chain of .*IN(?s:.*)SET .*{made.cause} by ida")),
        (("that it ended", r"ended|X .*\*\*\* [Dd]isconnect"), ("how", "signal 11")),
        (("value", f"ODD .*{made.odd}"), ("who", f"(jonas.*ODD.*{made.odd}|ODD.*{made.odd}.*jonas)"), ("that it was unexpected", '"noted"')),
        (("value", f"OFF .*{made.refused}"), ("who", f"(otto.*OFF.*{made.refused}|OFF.*{made.refused}.*otto)"),
         ("that it was refused", r"OFF .*\[(denied|failed)\]")),
        (("values", r"SECONDS .*\d"), ("which link", r"link \S+CLOCK\.OUT")),
        (("when", "NOT WATCHED"),),
    ]
    print("| question | ebpfMonHistory | caPutLog | archiver |\n|---|---|---|---|")
    for question, answer, aspects in zip(told(), answers, wanted, strict=True):
        print(f"| {question} | {grade(answer, *aspects)} | {grade(putlog, *aspects)} | {grade(archive, *aspects)} |")
        assert grade(answer, *aspects) == ", ".join(name for name, _ in aspects), "\n".join(answer)
    made.putter.discard()


def main():
    trials = {"kill": (kill, 200), "power": (power, 20), "cost": (cost, 5), "rate": (rate, 60.0), "day": (day, paths.CACHE / "modules")}
    if len(sys.argv) < 2 or sys.argv[1] not in trials:
        sys.exit(__doc__)
    trial, default = trials[sys.argv[1]]
    with tempfile.TemporaryDirectory() as tmp:
        try:
            trial(Path(tmp), type(default)(sys.argv[2]) if len(sys.argv) > 2 else default)
        finally:
            subprocess.run(["umount", "-q", Path(tmp) / "disk"], stderr=subprocess.DEVNULL)
            for process in list(alive):
                process.kill()


main()
