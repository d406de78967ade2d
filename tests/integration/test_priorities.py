# SPDX-License-Identifier: BSD-3-Clause
"""No thread of the monitor goes before a thread of an IOC, though EPICS Base gives real-time priorities where it may."""
import re
import subprocess
from pathlib import Path

from tests.harness import db, paths

PRIORITY, NICE, POLICY = 15, 16, 38  # places in /proc/PID/task/TID/stat behind the name, from 0 (proc(5))
OTHER = 0  # SCHED_OTHER


def threads(pid):
    """name → (policy, nice) of each thread."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        name, rest = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        fields = rest.split()
        found[name] = int(fields[POLICY]), int(fields[NICE])
    return found


def test_priorities(new_ioc, new_monitor):
    ioc = new_ioc(db.READY).start()
    seen = threads(ioc.pid)
    monitor = new_monitor().start()
    own = threads(monitor.process.pid)
    assert {"scan-1", "cbLow", "CAS-TCP", "ebpfMonEvent", "ebpfMonPacket"} <= own.keys()
    assert {name: policy for name, (policy, _) in own.items() if policy != OTHER} == {}
    assert own["ebpfMonEvent"][1] == own["ebpfMonPacket"][1] == -10
    assert "scan-1" in seen


def test_check():
    """Though it gives up CAP_SYS_NICE, --check says that the monitor has it."""
    said = subprocess.run([paths.MONITOR, "--check"], capture_output=True, text=True, timeout=60, check=False).stdout
    assert "without CAP_SYS_NICE" not in said
    assert re.search(r"(?m)^yes +priority", said), said
