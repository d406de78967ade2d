# SPDX-License-Identifier: BSD-3-Clause
"""What an IOC changes without a put to SCAN or to a link, while its passes are watched; and large groups."""
import json

import pytest
from tests.harness import db, loopback
from tests.harness.passes import Trial, row
from tests.harness.wait import settled, until


@pytest.fixture(scope="module")
def monitor(module_monitor):
    return module_monitor(iocs="none").start()


@pytest.mark.parametrize("when", ["in the database", "while it runs"])
def test_simulation_moves_a_record(new_ioc, monitor, when):
    """A record that is simulated is scanned by the list of SSCN. Nobody puts to its SCAN."""
    sscn = {"SSCN": ".1 second"} if when == "in the database" else {}
    text = db.READY + db.record("ai", "X", SCAN="1 second", FLNK="$(P)C", **sscn) + db.counter("C")
    ioc = new_ioc(text + "".join(db.counter(f"N{i}", SCAN="1 second") for i in range(8))).start()
    monitor.set_filter(IOC=ioc.name, LEVEL="counts")
    monitor.wait_ioc(ioc, level="counts")
    until(lambda: monitor.records(ioc.name)[ioc.prefix + "N0"].count > 2, 20, "it is counted")
    if not sscn:
        until(lambda: row(monitor, ioc)[0] == "passes", 60, "passes")
        ioc.put("X.SSCN", ".1 second")
        until(lambda: "atleast" in monitor.records(ioc.name)[ioc.prefix + "C"].flags, 60, "a mark")
    until(lambda: row(monitor, ioc)[0] != "passes", 60, "chains are watched")

    def unseen():
        """What C processed before it was watched."""
        return int(ioc.get("C")) - monitor.records(ioc.name)[ioc.prefix + "C"].count

    before = settled(unseen, 20, quiet=0.3)  # it processes once a second
    start = int(ioc.get("C"))
    ioc.put("X.SIMM", "YES")
    until(lambda: int(ioc.get("C")) > start + 30, 30, "the record is simulated")
    ioc.put("X.SCAN", "Passive")
    until(lambda: unseen() == before, 20, lambda: f"not counted: {unseen()}, before: {before}")


def test_large_group(new_ioc, monitor):
    """A group of QSRV has two parts of each of 40 records. A thread that reads or writes it whole has all their locks at once."""
    def member(i):
        parts = {f"v{i}": {"+channel": "VAL"}, f"a{i}": {"+channel": "VAL", "+type": "meta"}}
        return f'record(calc, "$(P)C{i}") {{ info(Q:group, {json.dumps({"$(P)GRP": parts})}) }}\n'

    t = Trial(new_ioc, monitor, "".join(db.counter(f"C{i}", SCAN=".1 second") + member(i) for i in range(40)), kind="softIocPVA")
    before = t.stop()
    t.scan()
    with loopback.pva_context(t.ioc.port) as client:
        for _ in range(20):
            client.get(t.ioc.prefix + "GRP", timeout=60)
    after = t.stop()
    assert not t.compare(before, after)


def test_aliases_come(new_ioc, monitor, tmp_path):
    """dbCreateAlias at the shell of an IOC that runs: counts, marks and the way of counting stay."""
    t = Trial(new_ioc, monitor, "".join(db.chain(f"C{i}_", 2, SCAN=".1 second") for i in range(20)))
    before = t.stop()
    t.ioc.command(f'dbCreateAlias(pdbbase, "{t.ioc.prefix}C1_0", "{t.ioc.prefix}ALIAS")')

    def is_known():
        monitor.command(f'ebpfMonInventory {tmp_path / "all.json"} "{t.ioc.name}"')
        return "ALIAS" in (tmp_path / "all.json").read_text()

    until(is_known, 60, "the alias")
    t.ioc.command(f'dbpf {t.ioc.prefix}ALIAS.PROC 1')
    after = t.stop()
    assert after[0]["C1_1"] == before[0]["C1_1"] + 1
    assert not t.compare(before, after)
