# SPDX-License-Identifier: BSD-3-Clause
"""Other kinds of IOCs are watched, too: pythonSoftIOC, which has its own Base in a wheel, and softIocPVA; puts by PVA."""
import getpass
import os
import signal
import subprocess
import sys

import pytest
from tests.harness import ca, db, loopback, paths
from tests.harness.wait import until


@pytest.fixture(scope="module")
def monitor(module_monitor):
    return module_monitor().start()


def put_of(monitor, pv, value, seconds=5):
    def seen():
        times = monitor.list("PUT_TIMES")
        columns = [monitor.list(c) for c in ("PUT_PVS", "PUT_VALUES", "PUT_OLD_VALUES", "PUT_WRITERS", "PUT_IOCS")]
        if monitor.list("PUT_TIMES") != times:  # the columns are not of one moment
            return None
        return next((row for row in zip(*columns) if row[0] == pv and row[1] == value), None)

    return until(seen, seconds, lambda: f"{pv} {value}:\n{monitor.lines('PUT_LOG')[:600]}")


def test_python_soft_ioc(module_ioc, monitor):
    """The monitor finds the IOC, its records and the writers of puts."""
    ioc = module_ioc(kind="pythonSoftIOC", files=[paths.PROGRAMS / "exec_ioc.py"]).start(ready="AO")
    name, version, records, _ = monitor.wait_ioc(ioc, level="chains", records=3)
    assert name == ioc.name
    assert version.startswith("7.0.10"), version
    names = set(monitor.records(ioc.name))
    assert {ioc.prefix + n for n in ("AO", "AI", "MODE")} <= names
    assert records >= len(names) > 2

    ioc.put("AO", 2.5)
    ioc.put("MODE", "Fast")
    row = put_of(monitor, ioc.prefix + "AO", "2.5")
    assert row[2] == "0" and row[3].startswith(f"{getpass.getuser()}@{paths.HOST}") and row[4] == ioc.name
    put_of(monitor, ioc.prefix + "MODE", "Fast")

    before = monitor.records(ioc.name)[ioc.prefix + "AO"].count
    for i in range(50):
        ioc.put("AO", i)
    until(lambda: monitor.records(ioc.name)[ioc.prefix + "AO"].count == before + 50, 10,
          lambda: f"50 more than {before}: {monitor.records(ioc.name)[ioc.prefix + 'AO']}")


def test_python_that_was_plain(new_ioc, monitor):
    """The monitor looks at each start of a program only until it knows the program (watch/iocFinder.h)."""
    for _ in range(20):  # twelve that end at once are enough
        subprocess.run([sys.executable, "-c", "pass"], check=True)
    ioc = new_ioc(kind="pythonSoftIOC", files=[paths.PROGRAMS / "exec_ioc.py"]).start(ready="AO")
    monitor.wait_ioc(ioc, level="chains", records=3)


def test_children_of_an_ioc(new_ioc, monitor):
    """A child that an IOC forked has its database, but is no IOC as long as the IOC runs. One that has become a daemon is."""
    ioc = new_ioc(kind="pythonSoftIOC", files=[paths.PROGRAMS / "exec_ioc.py"]).start(ready="AO")
    monitor.wait_ioc(ioc)
    ioc.process.send("fork")
    line = until(lambda: next((line for line in ioc.process.lines if "forked" in line), None), 10, ioc.process.output)
    child, daemon = map(int, line.split()[-2:])
    try:
        until(lambda: daemon in monitor.iocs(), 20, lambda: f"the daemon {daemon} is found: {monitor.iocs()}")
        assert child not in monitor.iocs()  # the search that found the daemon has looked at the child before
        ioc.kill()
        until(lambda: child in monitor.iocs(), 20, lambda: f"the child {child} goes on, and is found: {monitor.iocs()}")
    finally:
        for pid in child, daemon:
            os.kill(pid, signal.SIGKILL)


def test_soft_ioc_pva(module_ioc, monitor):
    ioc = module_ioc(db.READY + db.record("ao", "AO") + db.chain("C", 5), kind="softIocPVA").start()
    monitor.wait_ioc(ioc, records=7)
    assert ioc.run("pvput", "-w", "5", ioc.prefix + "AO", 6.5).returncode == 0
    row = put_of(monitor, ioc.prefix + "AO", "6.5")
    assert row[3].startswith(f"{getpass.getuser()}@"), row
    assert ca.get(ioc.prefix + "AO") == 6.5


def test_put_by_pva_to_pvxs(module_ioc, monitor):
    """pvxs serves many connections from one thread: the writer must be the right client."""
    ioc = module_ioc(kind="pythonSoftIOC", files=[paths.PROGRAMS / "exec_ioc.py"]).start(ready="AO")
    monitor.wait_ioc(ioc)
    contexts = [loopback.pva_context(ioc.port) for _ in range(3)]
    try:
        for c in contexts:
            c.get(ioc.prefix + "AO", timeout=60)
        for i, c in enumerate(contexts):
            c.put(ioc.prefix + "AO", 100 + i, timeout=60)
            row = put_of(monitor, ioc.prefix + "AO", str(100 + i))
            assert row[4] == ioc.name
    finally:
        for c in contexts:
            c.close()
