# SPDX-License-Identifier: BSD-3-Clause
"""In a pass, the last record of a stretch tells of all. Every count is exact, while records in the middle are disabled, asynchronous
or processed by others. The scans stop and go on by iocPause and iocRun, because after a put to SCAN each record is looked at for a
minute."""
import random

import pytest
from tests.harness import ca, db
from tests.harness.passes import FAST, begin_still, fast, let_scan, row, stand_still  # noqa: F401
from tests.harness.soak import size, soak
from tests.harness.wait import until

pytestmark = soak


@pytest.fixture(scope="module")
def monitor(module_monitor):
    return module_monitor(iocs="none").start()


def database():
    """80 chains of 2 to 8 records in three lists; 10 with an asynchronous record in the middle."""
    text = "".join(db.chain(f"C{i}_", 2 + i % 7, SCAN=FAST[i % 3]) for i in range(80))
    for i in range(10):
        text += db.counter(f"D{i}", SCAN=FAST[i % 3], FLNK=f"$(P)D{i}:A")
        text += db.counter(f"D{i}:A", FLNK=f"$(P)D{i}:OUT")
        text += db.out_counter(f"D{i}:OUT", ODLY="0.004", OUT=f"$(P)D{i}:TO.PROC PP", FLNK=f"$(P)D{i}:B")
        text += db.counter(f"D{i}:TO") + db.counter(f"D{i}:B", FLNK=f"$(P)D{i}:C") + db.counter(f"D{i}:C")
    return text


def test_others_process_and_disable(new_ioc, monitor, fast):
    t, before = begin_still(new_ioc, monitor, fast, database())
    choice = random.Random(7)
    procs = ca.pvs(f"{t.ioc.prefix}{n}.PROC" for n in t.names)
    disas = ca.pvs(f"{t.ioc.prefix}{n}.DISA" for n in t.names if n != "C0_0")

    def anything():
        for _ in range(size(20, 60)):
            choice.choice(procs).put(1, wait=False)
        for _ in range(4):
            choice.choice(disas).put(choice.choice([0, 0, 1]), wait=False)
        choice.choice(procs).put(1, wait=True, timeout=60)

    let_scan(t, 300)  # passes as a whole
    let_scan(t, size(300, 2000), anything)
    for level in ("chains", "counts") * size(2, 6):
        monitor.set_filter(LEVEL=level)
        let_scan(t, 300, anything)
    after = stand_still(t)
    assert not t.compare(before, after)
    assert row(monitor, t.ioc)[0] == "passes"


def test_links_change(new_ioc, monitor, fast):
    """Forward links are led to the middle and to the end of other stretches, whose first records are disabled."""
    t, before = begin_still(new_ioc, monitor, fast, database())
    choice = random.Random(8)
    let_scan(t, 300)
    for i in range(size(10, 40)):
        chain, other = choice.sample(range(80), 2)
        t.ioc.put(f"C{chain}_0.DISA", 1)
        t.ioc.put(f"C{other}_{other % 7 + 1}.FLNK", f"{t.ioc.prefix}C{chain}_{choice.choice([1, chain % 7 + 1])}")
        let_scan(t, 20)
    after = stand_still(t)
    assert not t.compare(before, after, "all")
