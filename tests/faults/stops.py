# SPDX-License-Identifier: BSD-3-Clause
"""IOCs that wait a lot, and are stopped and go on: nobody may call that a deadlock (tools/whyTrial.sh -d MINUTES).

Scan threads of two IOCs wait for each other's lock sets and for mutexes, in device support that sleeps for up to 3 s; clients put into
the same lock sets. A third IOC waits for Python's GIL, which C code keeps for up to 3 s, a fourth one has the load of a site
(tests/bench/site.py) with its clients, a fifth one, if this machine has asyn, waits for ports whose device is slow. SIGSTOP comes at
random moments, for up to 4 s. No thread waits for another one in a circle, and no owner ends. At the end nobody stops or sleeps any
more: then no hang may stay.
"""
import os
import random
import re
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.harness import loopback, netns

netns.enter_new()
loopback.use()  # before a client library is imported

from tests.bench import site  # noqa: E402
from tests.harness import ca, db, paths, process, rawca  # noqa: E402
from tests.harness.device import Device  # noqa: E402
from tests.harness.ioc import Ioc  # noqa: E402
from tests.harness.monitor import Monitor  # noqa: E402
from tests.harness.preload import preload_asyn  # noqa: E402
from tests.harness.process import Process  # noqa: E402
from tests.harness.wait import Late, until  # noqa: E402

SCANS = [".1 second", ".2 second", ".5 second", "1 second", "2 second"]
FALSE = re.compile("deadlock|owner .*ended")
STAYS = ["DEADLOCK_CNT", "HANG_CNT", "IOC_STILL_CNT", "SUBSCRIPTION_STALLED_CNT"]


def database():
    """Each slow record is in one lock set with a record of each scan thread."""
    text = db.READY + "".join(db.chain(f"C{i}x", 10, SCAN=SCANS[i % 3]) for i in range(60))
    for k in range(6):
        text += db.record("aSub", f"SLOW{k}", SNAM=["sleepFor", "waitForGate"][k % 2], FTA="DOUBLE", FTVA="DOUBLE", SCAN=SCANS[2 + k % 3], FLNK=f"$(P)F{k}x0")
        text += "".join(db.counter(f"F{k}x{i}", SCAN=scan, FLNK=f"$(P)F{k}x{i + 1}" if i + 1 < len(SCANS) else "") for i, scan in enumerate(SCANS))
    return text


def put(ioc, choice, ended):
    """A client that puts into the lock sets, and changes how long their device support takes (us)."""
    client = rawca.RawCa(ioc.port, "stops", "test")
    while not ended.wait(0.05):
        k = choice.randrange(6)
        client.put(f"{ioc.prefix}SLOW{k}.A", rawca.DOUBLE, [choice.choice([1e3, 1e5, 3e6])], sync=False)
        client.put(f"{ioc.prefix}F{k}x{choice.randrange(len(SCANS))}.PROC", rawca.DOUBLE, [1.0])  # waits, so that no puts are left at the end
    client.close()


def with_ports(tmp, device):
    """Scan threads wait for two ports, whose threads wait for a device; they are in lock sets with each other."""
    ports = "".join(db.record("aSub", f"PORT{k}", SNAM="waitForPort", FTA="CHAR", NOA=40, FTB="CHAR", NOB=40, SCAN=SCANS[k], FLNK=f"$(P)BEHIND{k % 2}") +
                    db.record("stringin", f"ASK{k}", DTYP="asynOctetCmdResponse", INP=f"@asyn(L{k % 2},0,10){'SLOW' if k < 2 else 'FAST'}?", SCAN=SCANS[k])
                    for k in range(4)) + db.counter("BEHIND0") + db.counter("BEHIND1")
    (tmp / "ports.db").write_text(db.READY + ports)
    (tmp / "st.cmd").write_text("\n".join([f'dbLoadDatabase "{paths.STREAM}/dbd/streamApp.dbd"', "streamApp_registerRecordDeviceDriver",
        *(f'drvAsynIPPortConfigure L{n} 127.0.0.1:{device.port}\nasynSetQueueLockPortTimeout L{n} 0\n'
          f'asynOctetSetOutputEos L{n} 0 "\\r\\n"\nasynOctetSetInputEos L{n} 0 "\\r\\n"' for n in range(2)),
        f'dbLoadRecords "{tmp}/ports.db" "P=PORTS:"', "iocInit", ""]))
    ioc = Ioc(tmp, kind="streamIoc", prefix="PORTS:", files=[tmp / "st.cmd"], environ=preload_asyn(tmp)).start()
    for k in range(4):
        ioc.put(f"PORT{k}.A", [*f"L{k % 2}".encode(), 0])
    return ioc


PYTHON = """import ctypes, random, sys, threading, time
from softioc import asyncio_dispatcher, builder
from softioc import softioc as ioc
builder.SetDeviceName(sys.argv[-1].rstrip(":"))
builder.aOut("READY", initial_value=1)
calm = builder.boolOut("CALM", initial_value=0)
for n, scan in enumerate((".1 second", ".2 second", ".5 second")):
    builder.aOut(f"ASK{n}", always_update=True).SCAN = scan
def keep():
    while True:
        ctypes.PyDLL(None).usleep(1000 if calm.get() else random.choice([1000, 100000, 3000000]))
        time.sleep(0.05)
builder.LoadDatabase()
ioc.iocInit(asyncio_dispatcher.AsyncioDispatcher())
threading.Thread(target=keep, daemon=True).start()
sys.stdin.read()
"""


def main(minutes):
    seed = random.randrange(1 << 30)
    choice, ended, seen, kinds, stops, hangs = random.Random(seed), threading.Event(), set(), set(), 0, 0
    repeater = Process([paths.BASE_BIN / "caRepeater"], os.environ.copy())
    device = Device({"SLOW?": (2, "SLOW 1"), "FAST?": (0.1, "FAST 1")})
    with tempfile.TemporaryDirectory() as tmp:
        iocs = [Ioc(Path(tmp), database(), kind="latencyIoc", realtime=False).start() for _ in range(2)]
        (Path(tmp) / "gil.py").write_text(PYTHON)
        iocs.append(Ioc(Path(tmp), kind="pythonSoftIOC", files=[Path(tmp) / "gil.py"], realtime=False).start())
        iocs.append(Ioc(Path(tmp), db.READY + site.database(), realtime=False).start())
        users = Process([sys.executable, "-m", "tests.bench.siteClients"], loopback.client(iocs[-1].port), cwd=paths.TESTS.parent)
        users.wait_line("ready", 60)
        if paths.STREAM_IOC.exists() and paths.ASYN.exists():
            iocs.append(with_ports(Path(tmp), device))
        monitor = Monitor(Path(tmp), before=["var ebpfMonHangLimit 1", "var ebpfMonWaitLimit 1"]).start()
        for ioc in iocs:
            monitor.wait_ioc(ioc)
        clients = [threading.Thread(target=put, args=(ioc, random.Random(seed + i), ended), daemon=True) for i, ioc in enumerate(iocs[:2])]
        for client in clients:
            client.start()
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end:
            ioc = choice.choice(iocs)
            ioc.process.halt()
            ended.wait(choice.choice([0.01, 0.3, 1.5, 4]))
            ioc.process.go_on()
            ended.wait(choice.uniform(0, 3))
            stops += 1
            if monitor.get("DEADLOCK_CNT"):
                seen.add("DEADLOCK_CNT: " + monitor.lines("WAITS_TEXT"))
            text = monitor.lines("WAITS_TEXT")
            hangs += "thread " in text
            kinds.update(re.findall("for (port|the GIL|the lock set|a mutex)", text))
            seen.update(l for l in monitor.lines("IOC_EVENTS").splitlines() if FALSE.search(l))
        ended.set()
        for client in clients:
            client.join()
        for ioc in iocs[:2]:
            for k in range(6):
                ioc.put(f"SLOW{k}.A", 1e3, wait=False)
        iocs[2].put("CALM", 1, wait=False)
        device.answers["SLOW?"] = (0.1, "SLOW 1")
        try:
            until(lambda: not any(monitor.get(name) for name in STAYS) and "thread " not in monitor.lines("WAITS_TEXT"), 30,
                  lambda: "stays: " + monitor.lines("WAITS_TEXT") + monitor.lines("HANG_STACKS"))
        except Late as late:
            seen.add(str(late))
        users.kill()
        for thing in (monitor, *iocs):
            thing.discard()
    ca.forget()
    repeater.kill()
    for left in list(process.alive):
        left.kill()
    print("\n".join([*seen, ""]) + f"seed {seed}: {stops} stops in {minutes:g} minutes, threads that waited at {hangs} looks (for {', '.join(sorted(kinds))}), {len(seen)} false deadlocks, or hangs that stay")
    return 1 if seen or not hangs else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
