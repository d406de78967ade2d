# SPDX-License-Identifier: BSD-3-Clause
"""The histograms of roots: their table grows, its places are used again, and what does not fit is counted as lost."""
import pytest
from tests.harness import db, rawca
from tests.harness.wait import settled, until

ROOTS = 64    # maxRoots
FEW, MANY = 40, 100
BURST = 700   # puts to as many records, at once; fewer than the spare room (kernelTables.c)
BURSTS = 3    # … together more than two blocks
FULL = "chain table full"


def periodic(number):
    return db.READY + "".join(db.counter(f"R{i}", SCAN=".1 second") for i in range(number))


@pytest.fixture
def small(new_monitor):
    return new_monitor(before=[f"ebpfMonConfigure 0 {ROOTS}"]).start()


def await_places(monitor, number):
    until(lambda: f"chain roots {number} of {ROOTS}" in report(monitor), 20, lambda: report(monitor))


def report(monitor):
    return "\n".join(monitor.command("ebpfMonReport 1"))


def has_all(monitor, ioc, number):
    names = {f"{ioc.prefix}R{i}" for i in range(number)}
    until(lambda: names <= set(monitor.list("CHAIN_TOP_NAMES")), 20, lambda: f"{names - set(monitor.list('CHAIN_TOP_NAMES'))}")


def test_places_are_used_again(new_ioc, small):
    for _ in range(4):
        ioc = new_ioc(periodic(FEW)).start()
        small.wait_ioc(ioc)
        has_all(small, ioc, FEW)
        ioc.kill()
        small.wait_gone(ioc.pid)
        await_places(small, 0)
    assert small.losses() == {} and small.text("AUDIT") == "all cross-checks agree"


def test_full_table(new_ioc, small):
    ioc = new_ioc(periodic(MANY)).start()
    small.wait_ioc(ioc)
    until(lambda: small.losses().get(FULL, 0) > 0, 20, lambda: str(small.losses()))
    assert set(small.losses()) == {FULL} and small.text("AUDIT") == "all cross-checks agree"
    await_places(small, ROOTS)


def test_table_grows(new_ioc, new_monitor):
    """Each put processes a record that was no root before."""
    ioc = new_ioc(db.READY + "".join(db.counter(f"R{i}") for i in range(BURSTS * BURST))).start()
    monitor = new_monitor().start()
    monitor.wait_ioc(ioc)
    client = rawca.RawCa(ioc.port)
    try:
        for burst in range(BURSTS):
            for i in range(burst * BURST, (burst + 1) * BURST):
                client.put(f"{ioc.prefix}R{i}.PROC", rawca.LONG, [i], notify=True)
            total = settled(lambda: sum(monitor.list("CHAIN_HIST")), 20, quiet=2)
            assert total == (burst + 1) * BURST
        assert monitor.losses() == {} and monitor.text("AUDIT") == "all cross-checks agree"
    finally:
        client.close()
