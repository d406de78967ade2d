# SPDX-License-Identifier: BSD-3-Clause
"""Modules (ebpfMonModule.h): a monitor with a module of a site, and without those of ebpfMon; the PVs of all modules in another IOC."""
import re

import pytest

from tests.harness import db, paths
from tests.harness.monitor import CoreMonitor, Monitor
from tests.harness.wait import until


class IocWithMonitor(Monitor):
    """An IOC of a site that is linked with ebpfMon."""

    def script(self):
        path = self.tmp / "st.cmd"
        path.write_text(f'''epicsEnvSet EBPFMON "{paths.TOP}"
dbLoadDatabase "$(EBPFMON)/dbd/ebpfMon.dbd"
ebpfMon_registerRecordDeviceDriver pdbbase
iocshLoad "$(EBPFMON)/iocsh/ebpfMon.iocsh", "P={self.prefix}"
iocInit
''')
        return path


@pytest.fixture
def monitor(tmp_path):
    m = CoreMonitor(tmp_path).start()
    yield m
    m.discard()


def test_module_of_a_site(monitor, new_ioc):
    """It hears puts, traces and events, and shows values and a table. Without the modules of ebpfMon, their commands are absent."""
    ioc = new_ioc(db.READY + 'record(ao, "$(P)SET") { field(FLNK, "$(P)NEXT") }\nrecord(calc, "$(P)NEXT") {}\n').start()
    monitor.wait_ioc(ioc)
    monitor.set_filter(LEVEL="trace")
    monitor.wait_ioc(ioc, level="trace")
    before, traces = monitor.get("EXAMPLE_PUT_CNT"), monitor.get("EXAMPLE_TRACE_CNT")
    for value in range(5):
        ioc.put("SET", value)
    ioc.put("SET.DISP", 1)
    ioc.put("SET", 5, wait=False)
    until(lambda: monitor.get("EXAMPLE_PUT_CNT") >= before + 7, 20, "the puts")
    until(lambda: sum(monitor.list("EXAMPLE_FAILED_CNTS")) >= 1, 20, "the one in vain")
    until(lambda: sum(monitor.list("EXAMPLE_CNTS")) == monitor.get("EXAMPLE_PUT_CNT"), 20, "the table")
    until(lambda: monitor.get("EXAMPLE_TRACE_CNT") >= traces + 5, 20, "the traces")
    assert "Module example: runs" in "".join(monitor.command("ebpfMonReport"))
    assert not [line for line in monitor.command("help") if re.search("ebpfMon(Clients|Device|Otlp|Query|Unused)", line)]
    ioc.stop()
    until(lambda: f"IOC {ioc.name} " in monitor.text("EXAMPLE_EVENT") and "ended" in monitor.text("EXAMPLE_EVENT"), 30, "the end")


def test_in_an_ioc_of_a_site(tmp_path):
    """iocsh/ebpfMon.iocsh loads the PVs of all modules, as the start-up scripts do. ibek's definition calls it."""
    for script in "iocsh/ebpfMon.iocsh", "iocBoot/iocEbpfMon/st.cmd", "service/st.cmd":
        assert re.findall(r"(?m)^dbLoadRecords .*/(\w+.db)", (paths.TOP / script).read_text()) == ["ebpfMon.db", *paths.MODULE_DBS], script
    assert "/iocsh/ebpfMon.iocsh" in (paths.TOP / "service" / "container" / "ebpfMon.ibek.support.yaml").read_text()
    monitor = IocWithMonitor(tmp_path).start()
    try:
        assert monitor.get("QUEUE_FULL_CNT") == 0 and monitor.get("HISTORY_STATE") is not None
    finally:
        monitor.discard()
