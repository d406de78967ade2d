# SPDX-License-Identifier: BSD-3-Clause
"""While a thread of the monitor holds one of its locks, it asks nobody who may answer late: no file, no /proc, no name
service, and no memory of another process. So an IOC, or an LDAP server, that does not answer delays nobody else."""
import pwd
import re
import subprocess

from tests.harness import db, paths
from tests.harness.clients import Client
from tests.harness.preload import preload
from tests.harness.traces import traced
from tests.harness.wait import until

DATABASE = "".join([
    db.READY,
    # values that are shown by their texts, which are in the memory of the IOC
    db.record("mbbo", "SEL", ZRVL="0", ONVL="1", TWVL="2", ZRST="Idle", ONST="Moving", TWST="Stopped", FLNK="$(P)NEXT"),
    db.record("bo", "NEXT", ZNAM="Closed", ONAM="Open", OMSL="closed_loop", DOL="$(P)SEL"),
    # chains in callback threads and of CP links, and puts by links in them
    db.counter("FIRE", FLNK="$(P)EVENT"), db.record("event", "EVENT", VAL="fired"),
    db.out_counter("HEARD", SCAN="Event", EVNT="fired", OUT="$(P)WRITTEN PP"), db.record("ao", "WRITTEN"),
    db.record("calc", "WATCH", CALC="VAL+1", INPA="$(P)WRITTEN CP", FLNK="$(P)COPY"),
    db.record("calcout", "COPY", INPA="$(P)WATCH", CALC="A", OUT="$(P)COPIED CA"), db.record("ao", "COPIED"),
])
USERS = [p.pw_uid for p in pwd.getpwall() if 0 < p.pw_uid < 50][:3]


def watch_locks(folder):
    """The environment of a monitor whose locks are watched, and the file of what was found."""
    found = folder / "locks.txt"
    return preload(folder, "lockWatch") | {"LOCK_WATCH": str(found)}, found


def test_nobody_is_asked_under_a_lock(module_ioc, module_monitor, tmp_path, sink):
    environ, found = watch_locks(tmp_path)
    ioc = module_ioc(DATABASE).start()
    monitor = module_monitor(environ=environ, before=[f'ebpfMonJsonLog "{tmp_path}/puts.json" 10 1 2 all',
                                                      f'ebpfMonOtlp "{sink.url}"']).start()
    monitor.wait_ioc(ioc)
    monitor.at_level("trace", ioc)
    clients = [Client(kind, uid, ioc, "SEL").ready() for kind, uid in zip(("ca", "cacb", "ca"), USERS, strict=True)]
    for client in clients:  # puts of users whose names are not known yet
        client.begin(0, 3)
        client.finish()
        client.discard()
    traced(monitor, ioc.prefix + "SEL", lambda t: "(bo) = Open" in "\n".join(t))
    ioc.put("FIRE.PROC", 1)
    traced(monitor, ioc.prefix + "FIRE", lambda t: "HEARD" in "\n".join(t))
    traced(monitor, ioc.prefix + "WATCH", lambda t: "by CP link from" in t[0])
    ioc.put("SEL.SCAN", "1 second")  # a menu
    ioc.put("COPY.OUT", ioc.prefix + "WRITTEN CA")  # links
    ioc.put("HEARD.OUT", ioc.prefix + "COPIED PP")
    ioc.put("FIRE.PROC", 1)
    until(lambda: {"SEL.SCAN", "COPY.OUT", "HEARD.OUT"} <= set(re.findall(r":([A-Z]+\.[A-Z]+)", monitor.lines("PUT_LOG"))), 10,
          lambda: f"the puts in {monitor.lines('PUT_LOG')}")
    ioc.kill()
    monitor.wait_gone(ioc.pid)
    assert not found.exists(), found.read_text()[:4000]
