# SPDX-License-Identifier: BSD-3-Clause
"""IOCs as containers run them: under a seccomp filter."""
import struct
import sys

import pytest
from tests.harness import ca, db, paths, rawca
from tests.harness.wait import until

DATABASE = db.READY + db.chain("C", 5) + db.record("ao", "AO") + db.record("ao", "OFF", DISP="1")
UNDER = [sys.executable, paths.PROGRAMS / "under_seccomp.py"]
N = 200


def line_of(monitor, pv, change):
    return until(lambda: next((l for l in monitor.lines("PUT_LOG").splitlines() if f" {pv} {change} by " in l), None), 10,
                 lambda: f"{pv} {change}:\n" + monitor.lines("PUT_LOG"))


def is_exact(monitor, ioc):
    """Each record is counted while there are puts."""
    before = {n: c.count for n, c in monitor.records(ioc.name).items()}
    own = int(ioc.get("C4"))
    for i in range(N):
        ca.pv(f"{ioc.prefix}C0.PROC").put(1, wait=bool(i % 2), timeout=60)
    until(lambda: int(ioc.get("C4")) == own + N, 20, "all are processed")

    def counts():
        return {n: c.count - before[n] for n, c in monitor.records(ioc.name).items() if n.startswith(ioc.prefix + "C")}

    until(lambda: set(counts().values()) == {N}, 20, counts)


def test_results_under_seccomp(new_ioc, new_monitor):
    """The filter kills for the system calls of probes: the IOC lives on, its puts have results, and nothing is Degraded. On a
    kernel that would kill it the note says so."""
    monitor = new_monitor().start()
    ioc = new_ioc(DATABASE, wrap=[*UNDER, "kill"]).start()
    monitor.wait_ioc(ioc, records=len(DATABASE.splitlines()))
    is_exact(monitor, ioc)
    ca.write(ioc.port, ioc.prefix + "AO", struct.pack(">d", 4.5), rawca.DOUBLE)
    line = line_of(monitor, ioc.prefix + "AO", "0 -> 4.5")
    if "return probes under seccomp yes" not in "\n".join(monitor.command("ebpfMonReport")):
        pytest.skip("this kernel would end an IOC under seccomp for a return probe, and the monitor knows that")
    assert "not seen" not in line, line
    monitor.wait_state("Running")
    assert ioc.running


def test_monitor_that_cannot_try(new_ioc, new_monitor):
    """The monitor itself may set no filter: it takes no risk, and says what is missing. Of a
    put-callback the server's reply tells the result."""
    monitor = new_monitor()
    monitor.launch([*UNDER, "closed"])
    ioc = new_ioc(DATABASE, wrap=[*UNDER, "kill"]).start()
    monitor.wait_ioc(ioc, records=len(DATABASE.splitlines()))
    ca.write(ioc.port, ioc.prefix + "AO", struct.pack(">d", 4.5), rawca.DOUBLE)
    assert "result not seen" in line_of(monitor, ioc.prefix + "AO", "0 -> 4.5")
    ioc.put("AO", 5.5, wait=True)
    assert "result not seen" not in line_of(monitor, ioc.prefix + "AO", "4.5 -> 5.5")
    monitor.wait_text("STATE_MSG", lambda text: "seccomp" in text)
    is_exact(monitor, ioc)
