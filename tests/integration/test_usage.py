# SPDX-License-Identifier: BSD-3-Clause
"""The database of uses: the last user of each PV, also after restarts of the monitor, and the PVs that nobody has
used."""
import contextlib
import getpass
import os
import re
import sqlite3
import subprocess
import time

import pytest
from tests.harness import db, loopback, paths, rawca
from tests.harness.process import Process
from tests.harness.wait import until

DB = db.READY + "".join(db.record("ao", f"A{i}") for i in range(8)) + db.record("ao", "L0", OUT="$(P)L1 PP") + \
    db.record("ao", "L1")
READ, WRITE, SUBSCRIBE, CONNECT = 1, 2, 3, 4
DAY = 86400


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(DB).start()


def start(new_monitor, ioc, file, **how):
    monitor = new_monitor(before=[f'ebpfMonUsage "{file}"'], **how).start()
    monitor.wait_ioc(ioc)
    monitor.wait("USAGE_STATE", lambda s: s == 1, 60)
    return monitor


def uses(file, ioc):
    """(record, kind) → (channel, who, first, last, count)."""
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as c:
        return {(r.removeprefix(ioc.prefix), k): row for r, k, *row in
                c.execute("SELECT record, kind, channel, who, first, last, count FROM uses WHERE ioc = ?", [ioc.name])}


def unused(monitor, days, pattern="*"):
    """The report of ebpfMonUnused: its lines, and record → line."""
    lines = monitor.command(f'ebpfMonUnused {days} "{pattern}"')
    return lines, {line.split()[0]: line for line in lines if re.match(r"\S+:\S+ +(never seen|\d{4}-)", line)}


def test_read_write_and_subscription(new_monitor, ioc, tmp_path):
    file = tmp_path / "uses.db"
    early = rawca.RawCa(ioc.port, "early", "bird")  # its channel is older than the monitor
    early.sid(ioc.prefix + "A3")
    monitor = start(new_monitor, ioc, file)
    before = int(time.time())
    for n in range(3):
        ioc.run("caget", ioc.prefix + "A0.DESC")
    raw = rawca.RawCa(ioc.port, "writer", "somewhere")
    raw.put(ioc.prefix + "A1", rawca.DOUBLE, [7], True)
    raw.put(ioc.prefix + "A1", rawca.DOUBLE, [8], True)
    camonitor = Process([paths.BASE_BIN / "camonitor", ioc.prefix + "A2"], loopback.client(ioc.port))

    def seen():
        monitor.command("ebpfMonUnused 1")  # which writes all noted uses
        found = uses(file, ioc)
        return found if {("A0", READ), ("A1", WRITE), ("A2", SUBSCRIBE), ("A3", CONNECT)} <= set(found) and \
            found["A0", READ][4] == 3 and found["A1", WRITE][4] == 2 else None

    found = until(seen, 60, lambda: str(uses(file, ioc)))
    after = int(time.time())
    me = getpass.getuser()
    assert found["A0", READ][0] == ioc.prefix + "A0.DESC" and found["A0", READ][1].startswith(f"{me}@{paths.HOST} caget[")
    assert found["A1", WRITE][1].startswith("writer@somewhere ") and f"[{os.getpid()}]" in found["A1", WRITE][1]
    assert found["A2", SUBSCRIBE][1] == f"{me}@{paths.HOST} camonitor[{camonitor.pid}]"
    assert found["A3", CONNECT][1].startswith("early@bird ")
    assert all(before <= first <= last <= after for _, _, first, last, _ in
               (found["A0", READ], found["A1", WRITE], found["A2", SUBSCRIBE]))
    assert ("A4", READ) not in found and ("A0", WRITE) not in found and ("A1", READ) not in found
    # a read through a channel that is older than the monitor: its name comes from the server's list
    early.send(rawca.message(15, b"", rawca.DOUBLE, 1, early.sid(ioc.prefix + "A3"), 55))
    until(lambda: monitor.command("ebpfMonUnused 1") and ("A3", READ) in uses(file, ioc), 60, lambda: str(uses(file, ioc)))
    camonitor.kill()
    raw.close()
    early.close()


def test_kept_over_a_restart(new_monitor, ioc, tmp_path):
    file = tmp_path / "uses.db"
    monitor = start(new_monitor, ioc, file)
    raw = rawca.RawCa(ioc.port, "writer", "somewhere")
    raw.put(ioc.prefix + "A5", rawca.DOUBLE, [3], True)
    until(lambda: monitor.command("ebpfMonUnused 1") and ("A5", WRITE) in uses(file, ioc), 60, lambda: str(uses(file, ioc)))
    # Again, a moment after the first use was written. It is the same client: the use of another client would be written
    # in the next period.
    raw.put(ioc.prefix + "A5", rawca.DOUBLE, [5], True)
    until(lambda: monitor.text("PUT_LAST_VALUE") == "5", 60, "the put")
    monitor.stop()  # the rest is written
    first = uses(file, ioc)["A5", WRITE]
    assert first[4] == 2
    raw.close()
    monitor = start(new_monitor, ioc, file)
    assert uses(file, ioc)["A5", WRITE] == first
    ioc.run("caput", ioc.prefix + "A5", "4")
    until(lambda: monitor.command("ebpfMonUnused 1") and uses(file, ioc)["A5", WRITE][4] == first[4] + 1, 60,
          lambda: str(uses(file, ioc)))
    assert uses(file, ioc)["A5", WRITE][2] == first[2]


def test_unused(new_monitor, ioc, tmp_path):
    file = tmp_path / "uses.db"
    monitor = start(new_monitor, ioc, file)
    ioc.run("caget", ioc.prefix + "A0")
    ioc.run("caput", ioc.prefix + "A1", "3")
    camonitor = Process([paths.BASE_BIN / "camonitor", ioc.prefix + "A2"], loopback.client(ioc.port))
    wanted = {ioc.prefix + f"A{i}" for i in range(3, 8)}

    until(lambda: set(unused(monitor, 1, ioc.prefix + "A?")[1]) == wanted, 60,
          lambda: str(unused(monitor, 1, ioc.prefix + "A?")))
    lines, rows = unused(monitor, 1, ioc.prefix + "L?")
    assert " link" in rows[ioc.prefix + "L1"] and " link" not in rows[ioc.prefix + "L0"]
    assert any("only 0.0" in line and "nothing is known" in line for line in lines)
    assert any(line.startswith("2 of 2 records were not used") for line in lines)
    camonitor.kill()
    # a history: watched for 40 days with a gap of 2, used 10 days ago, packets not read for one day
    now = int(time.time())
    monitor.stop()
    with sqlite3.connect(file) as c:
        c.execute("DELETE FROM watched")
        c.executemany("INSERT INTO watched VALUES (?, ?, ?, ?)",
                      [(ioc.name, 15, now - 40 * DAY, now - 20 * DAY), (ioc.name, 15, now - 18 * DAY, now - 5 * DAY),
                       (ioc.name, 11, now - 5 * DAY, now - 4 * DAY), (ioc.name, 15, now - 4 * DAY, now)])
        c.execute("UPDATE uses SET last = ? WHERE record = ?", [now - 10 * DAY, ioc.prefix + "A2"])
    monitor = start(new_monitor, ioc, file)
    lines, rows = unused(monitor, 30, ioc.prefix + "A?")
    assert set(rows) == wanted
    text = "\n".join(lines)
    assert len(re.findall("not watched from", text)) == 1 and "2 gaps, 3.00 days in all" in text, text
    assert "not seen for 1.00 days: reads" in text and "only" not in text, text
    lines, rows = unused(monitor, 5, ioc.prefix + "A?")
    assert set(rows) == wanted | {ioc.prefix + "A2"} and "camonitor" in rows[ioc.prefix + "A2"]
    out = tmp_path / "unused.txt"
    monitor.command(f'ebpfMonUnused 5 "{ioc.prefix}A?" "{out}"')
    assert ioc.prefix + "A7" in out.read_text()
    monitor.command(f'ebpfMonUnused 5 "{ioc.prefix}A?" "{file}"')
    assert file.read_bytes().startswith(b"SQLite"), "the file of uses is not the place for the list"


def test_level_off_is_a_gap(new_monitor, ioc, tmp_path):
    """While the level is off, no time is noted as watched."""
    file = tmp_path / "uses.db"
    monitor = start(new_monitor, ioc, file)

    def ended(ways="ways"):
        """The end of the watched time, in these ways or in any way."""
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as c:
            return c.execute(f"SELECT max(ended) FROM watched WHERE ioc = ? AND ways = {ways}", [ioc.name]).fetchone()[0]

    until(lambda: monitor.command("ebpfMonUnused 1") and ended(15), 60, "watched in all ways")
    monitor.set_filter(LEVEL="off")
    monitor.wait_ioc(ioc, level="off")
    monitor.command("ebpfMonUnused 1")
    last = ended()
    begin = time.time()
    until(lambda: time.time() > begin + 2, 60, "some seconds")
    monitor.command("ebpfMonUnused 1")
    assert ended() == last


@pytest.mark.parametrize("what", ["garbage", "other", "folder", "missing"])
def test_a_file_that_cannot_be_used(new_monitor, ioc, tmp_path, what):
    file = tmp_path / "uses.db"
    if what == "garbage":
        file.write_bytes(b"no database at all" * 1000)
    elif what == "other":
        with sqlite3.connect(file) as c:
            c.execute("CREATE TABLE precious (a)")
    elif what == "folder":
        file.mkdir()
    else:
        file = tmp_path / "none" / "uses.db"
    before = file.read_bytes() if file.is_file() else None
    monitor = new_monitor(before=[f'ebpfMonUsage "{file}"']).start()
    monitor.wait_ioc(ioc)
    monitor.wait("USAGE_STATE", lambda s: s == 2, 60)
    assert str(file)[:60] in monitor.text("USAGE_MSG")
    assert any("uses are not kept" in line for line in monitor.process.lines)
    assert (file.read_bytes() if file.is_file() else None) == before
    ioc.run("caput", ioc.prefix + "A6", "3")
    until(lambda: monitor.text("PUT_LAST_PV") == ioc.prefix + "A6", 60, "the monitor goes on")
    if what == "missing":  # when the file can be written again, it is written
        file.parent.mkdir()
        until(lambda: monitor.command("ebpfMonUnused 1") and monitor.get("USAGE_STATE") == 1, 60, "the file is there now")
        assert ("A6", WRITE) in uses(file, ioc)


def test_it_tries_again_by_itself(new_monitor, ioc, tmp_path):
    """The monitor tries again a minute later, not in each period of 10 s. No command is needed."""
    file = tmp_path / "none" / "uses.db"
    monitor = new_monitor(before=[f'ebpfMonUsage "{file}"']).start()
    monitor.wait("USAGE_STATE", lambda s: s == 2, 60)
    failed = time.monotonic()
    file.parent.mkdir()
    monitor.wait("USAGE_STATE", lambda s: s == 1, 180)
    assert time.monotonic() - failed > 30 and file.stat().st_size > 0


def test_a_full_file_is_told(new_monitor, new_ioc, tmp_path):
    ioc = new_ioc(db.READY + "".join(db.record("ao", f"LONG:NAME:OF:A:RECORD:NUMBER:{i:05}") for i in range(8000))).start()
    file = tmp_path / "uses.db"
    monitor = new_monitor(before=[f'ebpfMonUsage "{file}" 1']).start()
    monitor.wait_ioc(ioc, records=8000)
    raw = rawca.RawCa(ioc.port)

    def use(numbers):
        for i in numbers:
            raw.sid(f"{ioc.prefix}LONG:NAME:OF:A:RECORD:NUMBER:{i:05}")

    use(range(0, 8000, 80))
    until(lambda: monitor.command("ebpfMonUnused 1 none") and monitor.get("USAGE_ROW_CNT") == 100, 60, "the first uses")
    use(i for i in range(8000) if i % 80)
    until(lambda: monitor.command("ebpfMonUnused 1 none") and monitor.get("USAGE_STATE") == 2, 60, "the file is full")
    assert "is full. Allow more MB" in monitor.text("USAGE_MSG")
    assert file.stat().st_size <= 1 << 20
    with sqlite3.connect(file) as c:
        assert c.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert c.execute("SELECT count(*) FROM uses").fetchone()[0] > 1000

    def read(what):
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as c:
            return c.execute(f"SELECT {what} WHERE ioc = ?", [ioc.name]).fetchone()[0]

    # The uses that are in the file go on, and no time counts as watched, because others are not written.
    watched, last = read("max(ended) FROM watched"), read("max(last) FROM uses")
    known = read("count(*) FROM uses")
    until(lambda: monitor.command("ebpfMonUnused 1 none") and read("min(last) FROM uses") > last, 60, "all known uses are written again")
    assert read("count(*) FROM uses") >= known and read("max(ended) FROM watched") == watched
    assert monitor.get("USAGE_STATE") == 2
    raw.close()


@pytest.mark.parametrize("kind", ["softIocPVA", "pvxs"])
def test_pv_access(new_monitor, new_ioc, tmp_path, kind):
    """Reads and subscriptions of clients of QSRV 1 and 2 are seen in packets."""
    ioc = new_ioc(DB, kind=kind).start()
    file = tmp_path / "uses.db"
    monitor = start(new_monitor, ioc, file)
    with loopback.pva_context(ioc.port) as context:
        context.get(ioc.prefix + "A0", timeout=60)
        subscription = context.monitor(ioc.prefix + "A1", lambda _: None)
        until(lambda: monitor.command("ebpfMonUnused 1") and
              {("A0", READ), ("A1", SUBSCRIBE)} <= set(uses(file, ioc)), 60, lambda: str(uses(file, ioc)))
        assert ("A2", READ) not in uses(file, ioc)
        assert f"[{os.getpid()}]" in uses(file, ioc)["A1", SUBSCRIBE][1]
        subscription.close()


def test_off_without_a_file(new_monitor, ioc):
    monitor = new_monitor().start()
    monitor.wait_ioc(ioc)
    assert monitor.get("USAGE_STATE") == 0 and "ebpfMonUsage" in monitor.text("USAGE_MSG")
    assert any("ebpfMonUsage begins it" in line for line in monitor.command("ebpfMonUnused 1"))


def test_a_file_that_another_program_holds(new_monitor, ioc, tmp_path):
    """Another program writes to the file for a long time. The monitor says so, and what it saw meanwhile is in the file afterwards."""
    file = tmp_path / "uses.db"
    monitor = start(new_monitor, ioc, file)
    until(lambda: monitor.command("ebpfMonUnused 1 none") and file.stat().st_size > 0, 60, "the file is there")
    with sqlite3.connect(file, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        ioc.run("caput", ioc.prefix + "A6", "4")
        until(lambda: monitor.text("PUT_LAST_PV") == ioc.prefix + "A6", 60, "the put is seen")
        until(lambda: monitor.command("ebpfMonUnused 1 none") and monitor.get("USAGE_STATE") == 2, 60,
              lambda: f"{monitor.get('USAGE_STATE')} {monitor.text('USAGE_MSG')}")
        assert "locked" in monitor.text("USAGE_MSG"), monitor.text("USAGE_MSG")
        assert monitor.get("USAGE_STATE.SEVR") == 1 and monitor.text("USAGE_MSG").startswith(monitor.get("USAGE_STATE.AMSG")[:34] or "?")
        other.execute("ROLLBACK")
    until(lambda: monitor.command("ebpfMonUnused 1 none") and monitor.get("USAGE_STATE") == 1 and ("A6", WRITE) in uses(file, ioc), 90,
          lambda: f"{monitor.text('USAGE_MSG')} {uses(file, ioc)}")
    assert (monitor.get("USAGE_STATE.SEVR"), monitor.get("USAGE_STATE.AMSG")) == (0, "")


def test_two_monitors(new_monitor, ioc, tmp_path):
    """Of two monitors one writes a file, and each use is counted once. The other says what to do, and goes on when the first one has ended."""
    file = tmp_path / "uses.db"
    first = start(new_monitor, ioc, file)
    until(lambda: first.command("ebpfMonUnused 1 none") and file.exists(), 60, "the file is there")
    second = new_monitor(before=[f'ebpfMonUsage "{file}"']).start()
    second.wait_ioc(ioc)

    ioc.run("caput", ioc.prefix + "A7", "1")
    for monitor in first, second:
        until(lambda m=monitor: m.text("PUT_LAST_PV") == ioc.prefix + "A7", 60, "the put is seen")
        until(lambda m=monitor: m.command("ebpfMonUnused 1 none") and ("A7", WRITE) in uses(file, ioc), 60, "the use is written")
    assert uses(file, ioc)["A7", WRITE][-1] == 1
    until(lambda: second.get("USAGE_STATE") == 2 and "another monitor writes" in second.text("USAGE_MSG"), 20, lambda: second.text("USAGE_MSG"))
    first.stop()
    until(lambda: second.command("ebpfMonUnused 1 none") and second.get("USAGE_STATE") == 1, 60, lambda: second.text("USAGE_MSG"))


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_full_disk(new_monitor, ioc, tmp_path):
    """The disk is full when a use is to be written. The monitor says so and goes on; when there is room again, it is written."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0755", "tmpfs", disk], check=True)
    try:
        file, ballast = disk / "uses.db", disk / "ballast"
        monitor = start(new_monitor, ioc, file)
        until(lambda: monitor.command("ebpfMonUnused 1 none") and file.exists() and monitor.get("USAGE_STATE") == 1, 60, "the file is there")
        with contextlib.suppress(OSError), open(ballast, "wb", 0) as full:
            while True:
                full.write(bytes(4096))
        ioc.run("caput", ioc.prefix + "A6", "5")
        until(lambda: monitor.text("PUT_LAST_PV") == ioc.prefix + "A6", 60, "the put is seen")
        until(lambda: monitor.command("ebpfMonUnused 1 none") and monitor.get("USAGE_STATE") == 2, 60,
              lambda: f"{monitor.get('USAGE_STATE')} {monitor.text('USAGE_MSG')}")
        ballast.unlink()
        until(lambda: monitor.command("ebpfMonUnused 1 none") and monitor.get("USAGE_STATE") == 1 and ("A6", WRITE) in uses(file, ioc),
              90, lambda: f"{monitor.text('USAGE_MSG')} {uses(file, ioc)}")
        with sqlite3.connect(file) as c:
            assert c.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        monitor.stop()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.parametrize("what", ["damaged", "removed"])
def test_a_file_that_is_lost_while_it_is_used(new_monitor, ioc, tmp_path, what):
    """Another program writes over the file, or removes it. The monitor says so. It does not take a damaged file for its own any more;
    instead of a file that is gone it begins a new one."""
    file = tmp_path / "uses.db"
    monitor = start(new_monitor, ioc, file)
    ioc.run("caput", ioc.prefix + "A6", "6")
    until(lambda: monitor.command("ebpfMonUnused 1 none") and ("A6", WRITE) in uses(file, ioc), 60, "the use is there")
    for part in (file, *file.parent.glob("uses.db-*")):
        if what == "removed":
            part.unlink()
        elif not part.name.endswith("-shm"):  # this one is mapped by SQLite
            with open(part, "r+b") as damaged:
                damaged.write(b"\xa5" * part.stat().st_size)
    ioc.run("caput", ioc.prefix + "A5", "6")
    until(lambda: monitor.text("PUT_LAST_PV") == ioc.prefix + "A5", 60, "the put is seen")
    said = "written over" if what == "damaged" else "removed"
    until(lambda: any(said in line for line in monitor.process.lines) or not monitor.command("ebpfMonUnused 1 none"), 60,
          lambda: monitor.text("USAGE_MSG"))
    if what == "removed":
        until(lambda: monitor.command("ebpfMonUnused 1 none") and monitor.get("USAGE_STATE") == 1 and ("A5", WRITE) in uses(file, ioc),
              90, lambda: monitor.text("USAGE_MSG"))
    else:
        monitor.command("ebpfMonUnused 1 none")
        assert monitor.get("USAGE_STATE") == 2
