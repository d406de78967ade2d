# SPDX-License-Identifier: BSD-3-Clause
"""Ports of asyn: an IOC with StreamDevice and asyn's own device support, and a device that answers after known times.
As in test_async.py, the published time must not be less than the device took and not more than a client waited."""
import os
import re
import time

import pytest
from tests.harness import paths
from tests.harness.device import Device
from tests.harness.wait import until

pytestmark = pytest.mark.skipif(not os.access(paths.STREAM_IOC, os.X_OK),
                                reason=f"no IOC with asyn and StreamDevice in {paths.STREAM}: EBPFMON_STREAM names its folder")

PROTOCOL = """Terminator = CR LF; ReplyTimeout = 400; ReadTimeout = 100;
fast { LockTimeout = 5000; out "FAST?"; in "FAST %f"; }
slow { LockTimeout = 5000; out "SLOW?"; in "SLOW %f"; }
hasty { LockTimeout = 60; out "FAST?"; in "FAST %f"; }
mute { LockTimeout = 5000; out "MUTE?"; in "MUTE %f"; }
"""
DATABASE = """record(calc, "$(P)READY") { field(CALC, "1") field(PINI, "YES") }
record(ai, "$(P)FAST") { field(DTYP, "stream") field(INP, "@test.proto fast L0") }
record(ai, "$(P)SLOW") { field(DTYP, "stream") field(INP, "@test.proto slow L0") }
record(ai, "$(P)HASTY") { field(DTYP, "stream") field(INP, "@test.proto hasty L0") }
record(ai, "$(P)MUTE") { field(DTYP, "stream") field(INP, "@test.proto mute L0") }
record(stringin, "$(P)ASYN") { field(DTYP, "asynOctetCmdResponse") field(INP, "@asyn(L1,0,2)SLOW?") }
"""
COLUMNS = "PORTS RECORDS CNTS WAIT_MEANS WAIT_P99S WAIT_MAXS TIME_MEANS TIME_MAXS TIMEOUT_CNTS BEHINDS IOCS SILENT_CNTS LINKS".split()
ROUNDS = 8
MUTE_ROUNDS = 2


@pytest.fixture(scope="module")
def device():
    device = Device({"FAST?": (0.02, "FAST 1.0"), "SLOW?": (0.15, "SLOW 2.0"), "MUTE?": (0, None)})
    yield device
    device.close()


@pytest.fixture(scope="module")
def ioc(module_ioc, device, tmp_path_factory):
    tmp = tmp_path_factory.mktemp("stream")
    (tmp / "test.proto").write_text(PROTOCOL)
    (tmp / "test.db").write_text(DATABASE)
    prefix = f"T{os.getpid()}:dev:"
    (tmp / "st.cmd").write_text(f"""dbLoadDatabase "{paths.STREAM}/dbd/streamApp.dbd"
streamApp_registerRecordDeviceDriver
epicsEnvSet STREAM_PROTOCOL_PATH "{tmp}"
drvAsynIPPortConfigure L0 127.0.0.1:{device.port}
drvAsynIPPortConfigure L1 127.0.0.1:{device.port}
asynOctetSetOutputEos L1 0 "\\r\\n"
asynOctetSetInputEos L1 0 "\\r\\n"
dbLoadRecords "{tmp}/test.db" "P={prefix}"
iocInit
""")
    return module_ioc(kind="streamIoc", prefix=prefix, files=[tmp / "st.cmd"]).start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc):
    m = module_monitor(before=['ebpfMonDeviceWatch "*"']).start()
    m.wait_ioc(ioc)
    m.wait("DEVICE_IOC_CNT", lambda n: n == 1)

    def known():
        """The functions of the device support get their probes when a first request has shown these functions."""
        for record in ("FAST", "SLOW", "HASTY", "MUTE", "ASYN"):
            ioc.put(f"{record}.PROC", 1)
        found = rows(m)
        return all((port, ioc.prefix + r) in found for port, r in
                   (("L0", "FAST"), ("L0", "SLOW"), ("L0", "HASTY"), ("L0", "MUTE"), ("L1", "ASYN")))

    until(known, 30, lambda: f"all users: {rows(m)} {m.text('DEVICE_MSG')}")
    return m


def rows(monitor):
    table = zip(*(monitor.list(f"DEVICE_{c}") for c in COLUMNS))
    return {r[:2]: dict(zip(COLUMNS, r)) for r in table}


def quiet(monitor):
    """Waits until all requests are published."""
    seen = monitor.get("DEVICE_REQUEST_CNT"), time.monotonic()

    def same():
        nonlocal seen
        count = monitor.get("DEVICE_REQUEST_CNT")
        if count != seen[0]:
            seen = count, time.monotonic()
        return time.monotonic() - seen[1] > 2.5

    until(same, 20, "no more requests")


def took(ioc, record):
    """ms that a client waits for the record's completion."""
    begin = time.monotonic()
    ioc.put(f"{record}.PROC", 1)
    return (time.monotonic() - begin) * 1e3


@pytest.mark.parametrize("record, port, line", [("SLOW", "L0", "SLOW?"), ("ASYN", "L1", "SLOW?")], ids=["stream", "asyn"])
def test_time_of_the_driver(ioc, monitor, device, record, port, line):
    key = (port, ioc.prefix + record)
    quiet(monitor)
    before, known = rows(monitor)[key], len(device.took[line])
    most = sum(took(ioc, record) for _ in range(ROUNDS))
    quiet(monitor)
    row = rows(monitor)[key]
    least = sum(device.took[line][known:])
    total = row["TIME_MEANS"] * row["CNTS"] - before["TIME_MEANS"] * before["CNTS"]
    assert len(device.took[line]) == known + ROUNDS
    assert least <= total <= most, f"{least} <= {total} <= {most} ms: {before} {row}"
    assert row["CNTS"] - before["CNTS"] in (ROUNDS, 2 * ROUNDS, 3 * ROUNDS)  # StreamDevice: a request for each step
    assert 150 <= row["TIME_MAXS"] and row["IOCS"] == ioc.name


def test_wait_behind_another_record(ioc, monitor, device):
    """FAST waits while SLOW has the port: from its request until the answer to SLOW has come."""
    quiet(monitor)
    key = ("L0", ioc.prefix + "FAST")
    before = rows(monitor)[key]
    most = least = 0

    for _ in range(ROUNDS):
        asked = len(device.took["SLOW?"])
        ioc.put("SLOW.PROC", 1, wait=False)
        begin = time.monotonic()
        ioc.put("FAST.PROC", 1)
        waited = (time.monotonic() - begin) * 1e3
        assert len(device.took["SLOW?"]) == asked + 1
        most += waited
        least += waited - device.took["FAST?"][-1]
    quiet(monitor)
    row = rows(monitor)[key]
    total = row["WAIT_MEANS"] * row["CNTS"] - before["WAIT_MEANS"] * before["CNTS"]
    assert 0.7 * least <= total <= most, f"{least} <= {total} <= {most} ms: {before} {row}"
    assert row["BEHINDS"] == ioc.prefix + "SLOW"
    assert 100 <= row["WAIT_MAXS"] and row["WAIT_P99S"] <= row["WAIT_MAXS"]


def test_time_outs_of_the_queue_are_told_from_those_of_the_device(ioc, monitor):
    """HASTY has a short time-out in the queue: its request is removed, and nothing is sent to the device. MUTE has the
    port, and no answer comes."""
    quiet(monitor)
    before, count = rows(monitor), monitor.get("DEVICE_TIMEOUT_CNT")
    ioc.put("SLOW.PROC", 1, wait=False)
    ioc.put("HASTY.PROC", 1)
    for _ in range(MUTE_ROUNDS):
        ioc.put("MUTE.PROC", 1)
    assert ioc.get("HASTY.STAT", as_string=True) == ioc.get("MUTE.STAT", as_string=True) == "TIMEOUT"
    quiet(monitor)
    row = rows(monitor)

    def more(record, column):
        key = ("L0", ioc.prefix + record)
        return row[key][column] - before[key][column]

    assert more("HASTY", "TIMEOUT_CNTS") == 1 and more("MUTE", "TIMEOUT_CNTS") == 0
    mute = ("L0", ioc.prefix + "MUTE")
    until(lambda: rows(monitor)[mute]["SILENT_CNTS"] == before[mute]["SILENT_CNTS"] + MUTE_ROUNDS, 20, lambda: str(rows(monitor)[mute]))
    assert more("HASTY", "SILENT_CNTS") == 0 and more("SLOW", "SILENT_CNTS") == 0  # SLOW is slow, and answers
    assert monitor.get("DEVICE_TIMEOUT_CNT") == count + 1
    assert row[("L0", ioc.prefix + "MUTE")]["TIME_MAXS"] >= 400  # ReplyTimeout
    names, timeouts = monitor.list("ASYNC_TOP_NAMES"), monitor.list("ASYNC_TOP_TIMEOUT_CNTS")
    late = dict(zip(names, timeouts))
    assert late[ioc.prefix + "MUTE"] >= 1 and late[ioc.prefix + "SLOW"] == 0


def test_protocol_by_record(ioc, monitor):
    """The file and the protocol of StreamDevice, and what asyn's own device support asks."""
    found = {record.removeprefix(ioc.prefix): row["LINKS"] for (_, record), row in rows(monitor).items()}
    assert found["MUTE"] == "test.proto mute L0" and found["FAST"] == "test.proto fast L0"
    assert found["ASYN"] == "asyn(L1,0,2)SLOW?"


def test_text(ioc, monitor):
    lines = monitor.command("ebpfMonDevices")
    assert any(line.startswith("watches the ports of 1 IOC") for line in lines)
    line = next(line for line in lines if ioc.prefix + "FAST" in line and line.startswith("L0"))
    assert ioc.prefix + "SLOW" in line


def test_off_and_on(ioc, monitor):
    monitor.command('ebpfMonDeviceWatch ""')
    monitor.wait("DEVICE_IOC_CNT", lambda n: n == 0)
    assert monitor.text("DEVICE_MSG").startswith("off")
    took(ioc, "FAST")
    monitor.command('ebpfMonDeviceWatch "*"')
    monitor.wait("DEVICE_IOC_CNT", lambda n: n == 1)
    until(lambda: took(ioc, "FAST") and ("L0", ioc.prefix + "FAST") in rows(monitor), 20, lambda: rows(monitor))
    assert ioc.running


def test_cost_of_ports_is_in_the_budget_of_the_ioc(ioc, monitor):
    """What watching ports takes is in the cost of its IOC. If the IOC pays more than its budget, its ports are left, and the reason names
    the IOC and the budget; while nothing of the budget is left they are not watched."""
    monitor.set_filter(LEVEL="puts")
    ioc.put("FAST.SCAN", ".1 second")
    until(lambda: 0 < 0.8 * monitor.get("DEVICE_COST") < monitor.list("IOC_COSTS")[0] and monitor.get("COST") > 0, 30,
          lambda: f"DEVICE_COST {monitor.get('DEVICE_COST')}, IOC_COSTS {monitor.list('IOC_COSTS')}, COST {monitor.get('COST')}")
    until(lambda: abs(monitor.get("COST") / monitor.get("DEVICE_COST") - 1) < 0.5, 20,
          lambda: f"nothing else costs much: DEVICE_COST {monitor.get('DEVICE_COST')}, COST {monitor.get('COST')}")
    limit = monitor.get("DEVICE_COST") / 5
    monitor.set_filter(BUDGET=limit)
    until(lambda: monitor.get("DEVICE_IOC_CNT") == 0, 40, lambda: f"left: {monitor.text('DEVICE_MSG')}")
    assert re.match(rf"{ioc.name}: stopped: it paid .* for its ports, and FILTER_BUDGET is ", monitor.text("DEVICE_MSG"))
    until(lambda: monitor.get("DEVICE_COST") == 0 and monitor.get("COST") < limit, 20, lambda: str(monitor.get("COST")))
    monitor.set_filter(BUDGET=0, LEVEL="trace")
    ioc.put("FAST.SCAN", "Passive")
