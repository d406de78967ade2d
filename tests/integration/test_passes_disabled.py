# SPDX-License-Identifier: BSD-3-Clause
"""Records of scan lists that a pass leaves out: counts are exact while records are disabled by puts of clients, by other records, and by
something that writes into their memory."""
import os
import random
import re
import signal

import pytest
from tests.harness import ca, db
from tests.harness.passes import FAST, begin_still, busy_database, fast, let_scan, row, stand_still  # noqa: F401
from tests.harness.soak import size, soak
from tests.harness.wait import until

pytestmark = soak

CHAINS = 60


@pytest.fixture(scope="module")
def monitor(module_monitor):
    return module_monitor(iocs="none").start()


def database():
    """Chains of one to three records in one list. A record of another list disables and enables a record of this list by a link, and one
    of this list a record that comes later in the same pass."""
    text = "".join(db.chain(f"C{i}_", 1 + i % 3, SCAN=FAST[0]) for i in range(CHAINS))
    for name, scan in (("E", FAST[1]), ("F", FAST[0])):
        text += db.record("calcout", f"{name}:SWITCH", SCAN=scan, CALC="A", OOPT="On Change", OUT=f"$(P){name}.DISA NPP", PHAS="-1")
        text += db.counter(name, SCAN=FAST[0], FLNK=f"$(P){name}:NEXT") + db.counter(f"{name}:NEXT")
    return text + db.counter("LAST", SCAN=FAST[0], PHAS="1")


def begin(new_ioc, monitor, fast):
    t, before = begin_still(new_ioc, monitor, fast, database())
    t.names = [n for n in t.names if not n.endswith("SWITCH")]  # they do not count themselves
    let_scan(t, 100)
    return t, before


def test_puts_disable(new_ioc, monitor, fast):
    """Each record is disabled once, and stays so for some passes or for less than one."""
    t, before = begin(new_ioc, monitor, fast)
    for i in range(1, CHAINS):
        disas = ca.pvs([f"{t.ioc.prefix}C{i}_{i % (1 + i % 3)}.DISA"])
        disas[0].put(1, wait=False)
        if i % 2:
            let_scan(t, 3)
        disas[0].put(0, wait=False)
    for value in (1, 0, 1, 0):
        t.ioc.put("E:SWITCH.A", value)
        t.ioc.put("F:SWITCH.A", value)
        let_scan(t, 20)
    let_scan(t, 100)
    after = stand_still(t)
    assert not t.compare(before, after)
    assert any(after[0][f"C{i}_0"] < after[0]["C0_0"] for i in range(1, CHAINS))
    assert after[0]["F"] - before[0]["F"] < after[0]["LAST"] - before[0]["LAST"] - 20


def test_left_out_without_a_put(new_ioc, monitor, fast):
    """Something writes into the memory of a record, past dbPut."""
    t, before = begin(new_ioc, monitor, fast)
    at = int(re.search("Field Address: 0x([0-9a-f]+)", "".join(t.ioc.command(f"dba {t.ioc.prefix}C7_0.DISA")))[1], 16)
    with open(f"/proc/{t.ioc.pid}/mem", "r+b", buffering=0) as memory:
        os.pwrite(memory.fileno(), (1).to_bytes(2, "little"), at)
    let_scan(t, 200)
    after = stand_still(t)
    assert after[0]["C7_0"] < after[0]["C0_0"]
    assert not t.compare(before, after)


@pytest.mark.parametrize("seed", range(size(1, 8)))
def test_others_process(new_ioc, monitor, fast, seed):
    """Clients, CP links, events and delays process records before, between and during passes; some records are disabled; the IOC
    stands still; chains are timed."""
    choice = random.Random(seed)
    t, before = begin_still(new_ioc, monitor, fast, busy_database() + database())
    t.names = [n for n in t.names if not n.endswith("SWITCH")]
    procs = ca.pvs(f"{t.ioc.prefix}{n}.PROC" for n in t.names)
    disas = ca.pvs(f"{t.ioc.prefix}{n}.DISA" for n in choice.sample(t.names, 20) if n != "C0_0")

    def happen():
        for _ in range(choice.randrange(30)):
            choice.choice(procs).put(1, wait=False)
        if choice.random() < 0.1:
            choice.choice(disas).put(choice.choice([0, 1]), wait=False)
        if choice.random() < 0.05:
            os.kill(t.ioc.pid, signal.SIGSTOP)
            os.kill(t.ioc.pid, signal.SIGCONT)
        choice.choice(procs).put(1, wait=True, timeout=60)

    for level in ("counts", "chains") * size(1, 4):
        monitor.set_filter(LEVEL=level)
        until(lambda: row(monitor, t.ioc)[0] in ("passes", "turns"), 60, lambda: f"passes: {row(monitor, t.ioc)}")
        let_scan(t, size(300, 2000), happen)
    after = stand_still(t)
    assert not t.compare(before, after)
