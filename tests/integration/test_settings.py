# SPDX-License-Identifier: BSD-3-Clause
"""The filter, levels, open unexpected puts and IOCs that are gone survive a restart of the monitor, also a kill; and are
given up when they should be."""
import json
import os
import signal

import pytest

from tests.harness import db
from tests.harness.wait import until

DB = db.READY + db.record("ao", "AO") + db.record("ao", "BO")
RULES = {"rules": [{"name": "closed", "pv": "*:AO", "allow": False}]}


@pytest.fixture
def start(new_monitor, tmp_path):
    file = tmp_path / "settings"
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(RULES))

    def make(*more, **how):
        return new_monitor(before=[f'ebpfMonKeepSettings "{file}"', f'ebpfMonRules "{rules}"', *more], **how).start()
    make.file = file
    return make


def kept(start, *texts):
    until(lambda: start.file.exists() and all(t in start.file.read_text() for t in texts), 10,
          lambda: start.file.read_text() if start.file.exists() else "no file")


def bad(monitor):
    return list(zip(*(monitor.list(c) for c in ("PUT_BAD_PVS", "PUT_BAD_VALUES", "PUT_BAD_WRITERS", "PUT_BAD_REASONS", "PUT_BAD_TIMES"))))


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_they_survive(start, new_ioc, how):
    ioc = new_ioc(DB).start()
    monitor = start()
    monitor.wait_ioc(ioc)
    monitor.set_filter(SLOW=1234.5)
    monitor.command(f'ebpfMonLevel "{ioc.name}" counts')
    monitor.wait_ioc(ioc, level="counts")
    for value in 41, 42:
        ioc.put("AO", value)
    ioc.put("BO", 7)
    until(lambda: monitor.get("PUT_BAD_OPEN_CNT") == 2, 10, "two unexpected puts")
    before = until(lambda: len(lines := bad(monitor)) == 2 and lines, 10, lambda: bad(monitor))
    kept(start, "1234.5", f"level counts {ioc.name}", "put.val 42")
    if how == "exit":
        monitor.process.send("exit")
    else:
        monitor.process.signal(signal.SIGKILL)
    monitor.process.wait(20)
    second = start()
    until(lambda: second.get("PUT_BAD_OPEN_CNT") == 2, 10, "they are open")
    until(lambda: bad(second) == before, 10, lambda: (before, bad(second)))
    assert second.get("PUT_BAD_ALARM.SEVR") == 0, "they are no news"
    until(lambda: second.get("FILTER_SLOW") == 1234.5, 20, second.process.output)
    second.wait_ioc(ioc, level="counts")
    assert "filter restored from" in second.process.output()
    second.wait_text("STATE_MSG", lambda t: t.startswith("watching 1 of ") and t.endswith(f"; filter restored from {start.file}"))
    second.put("PUT_BAD_ACK", 1)
    until(lambda: second.get("PUT_BAD_OPEN_CNT") == 0, 10, "they are acknowledged")
    until(lambda: "put.val" not in start.file.read_text(), 10, "which is kept, too")
    second.command("ebpfMonForgetSettings")
    second.wait_ioc(ioc)
    until(lambda: second.get("FILTER_SLOW") != 1234.5, 10, "the filter of the start")
    second.wait_text("STATE_MSG", lambda t: t.startswith("watching 1 of ") and "restored" not in t)


def notes(monitor):
    return {n: note for n, pid, note in zip(*(monitor.list(f"IOC_{c}") for c in ("NAMES", "PIDS", "NOTES"))) if not pid}


def test_gone_iocs(start, new_ioc):
    """Four IOCs: the first crashed; while nobody looked, the second ended and came back, the third ended; the last stays."""
    crashed, back, missing, there = (new_ioc(db.READY).start() for _ in range(4))
    monitor = start()
    for ioc in crashed, back, missing, there:
        monitor.wait_ioc(ioc)
    kept(start, *(f"ioc {ioc.name}\n" for ioc in (crashed, back, missing, there)))
    os.kill(crashed.pid, signal.SIGSEGV)
    note = until(lambda: notes(monitor).get(crashed.name), 10, lambda: notes(monitor))
    assert "(signal 11" in note
    kept(start, "gone ", f" {crashed.name}\n")
    monitor.process.signal(signal.SIGKILL)
    monitor.process.wait(20)
    for ioc in back, missing:
        ioc.process.send("exit")
        ioc.process.wait(10)
    back.process.close()
    back.start()
    second = start()
    second.wait_ioc(back)
    second.wait_ioc(there)
    until(lambda: len(notes(second)) == 2, 10, lambda: notes(second))
    assert notes(second)[crashed.name] == note
    assert notes(second)[missing.name].startswith("not there when ebpfMon started at ")
    until(lambda: second.get("IOC_GONE_CNT") == 2, 5, lambda: second.get("IOC_GONE_CNT"))
    missing.process.close()
    missing.start()
    second.wait_text("IOC_EVENT_LAST", lambda t: f"IOC {missing.name} (pid {missing.pid}) restarted" in t)
    second.put("IOC_GONE_ACK", 1)
    until(lambda: not notes(second) and second.get("IOC_GONE_CNT") == 0, 10, lambda: notes(second))
    until(lambda: "gone " not in start.file.read_text(), 10, start.file.read_text)


def test_a_new_filter_in_the_script_counts(start, new_ioc):
    ioc = new_ioc(DB).start()
    monitor = start()
    monitor.wait_ioc(ioc)
    monitor.set_filter(SLOW=1234.5)
    kept(start, "1234.5")
    monitor.process.send("exit")
    monitor.process.wait(20)
    second = start('ebpfMonFilter "" "" "" "" "" "" 5555')
    until(lambda: "is new" in second.process.output(), 20, second.process.output)
    assert second.get("FILTER_SLOW") == 5555
    kept(start, "5555")


def test_a_file_that_is_none(start, new_ioc):
    """A damaged file, and one that cannot be written: it says so, and all else goes on."""
    start.file.write_text("\0\1nonsense" * 100)
    ioc = new_ioc(DB).start()
    monitor = start()
    monitor.wait_ioc(ioc)
    assert "is no file of kept settings" in monitor.process.output()
    kept(start, "ebpfMonSettings 1")
    os.remove(start.file)
    start.file.mkdir()
    monitor.set_filter(SLOW=77.0)
    until(lambda: "cannot be written" in monitor.process.output(), 10, monitor.process.output)
    start.file.rmdir()
    kept(start, "77")
    assert "are kept in" in monitor.process.output()
