# SPDX-License-Identifier: BSD-3-Clause
"""Puts over TLS by clients with several certificates and by some without, six at a time: does the monitor name each as its client
knows itself? tools/modules.sh builds pvxs with TLS and runs this."""
import collections
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.harness import netns, loopback

netns.enter_new()
loopback.use()  # before a client library is imported

from tests.harness import db, paths, tables  # noqa: E402
from tests.harness.ioc import Ioc  # noqa: E402
from tests.harness.monitor import Monitor  # noqa: E402
from tests.harness.process import Process  # noqa: E402
from tests.harness.putlog import PutLog  # noqa: E402
from tests.harness.wait import until  # noqa: E402

ROUNDS, AT_ONCE = 60, 6
CLIENTS = {  # name: keychain, user, method, issuer
    "a certificate": ("client1.p12", "x509/client1", "x509", "rootCA"),
    "another certificate of the same root": ("ioc1.p12", "x509/ioc1", "x509", "rootCA"),
    "no certificate, over TLS": ("ca.p12", "root", None, None),
    "no TLS": (None, "root", None, None),
}


def put_all(programs, certificates, ioc):
    """Makes the puts; put number N has the value N. Returns of each: whose it is, and its process."""
    made = []
    while len(made) < ROUNDS * len(CLIENTS):
        some = []
        for n in range(len(made), len(made) + AT_ONCE):
            name = list(CLIENTS)[n % len(CLIENTS)]
            keys = {"EPICS_PVA_TLS_KEYCHAIN": str(certificates / CLIENTS[name][0])} if CLIENTS[name][0] else {}
            some.append((name, Process([programs / "pvxput", ioc.prefix + "PV", n], loopback.client(ioc.port, **keys))))
        for _, process in some:
            process.wait(60)
        made += [(name, process.pid) for name, process in some]
    return made


def name_readers(programs, certificates, ioc, monitor):
    """A client of each kind subscribes at the same time. Returns which the lists of clients and of users name."""
    name = ioc.prefix + "PV"
    readers = {}
    for kind, (keychain, user, method, issuer) in CLIENTS.items():
        keys = {"EPICS_PVA_TLS_KEYCHAIN": str(certificates / keychain)} if keychain else {}
        readers[kind] = Process([programs / "pvxmonitor", name], loopback.client(ioc.port, **keys))
    rows = []

    def has_all():
        rows[:] = [line for c in (f"ebpfMonClients {ioc.name}", f'ebpfMonUsers "{name}"') for line in monitor.command(c)]
        return all(any(f" {r.pid} " in line for line in rows) for r in readers.values())

    try:
        until(has_all, 30, lambda: "\n".join(rows))
        named = {}
        for kind, (keychain, user, method, issuer) in CLIENTS.items():
            row = next(line.split() for line in rows if f" {readers[kind].pid} " in line)
            use = next((line.split() for line in rows if line.startswith(name) and row[2] in line.split()), None)
            named[kind] = (row[1].split("@")[0] == user and row[3] == ("TLS" if keychain else "PVA") and row[5:7] == ["1", "1"] and
                           (not issuer or " ".join(row).endswith(f"certificate by {issuer}")) and
                           use is not None and use[2] == row[1] and use[5] == "1")
            if not named[kind]:
                print(kind, row, use)
        print("\n".join(rows))
        return named
    finally:
        for r in readers.values():
            r.kill()


def refuse(port, monitor):
    """A client that does not trust the server, and one that knows an old version only, which pvxs does not answer. Nonzero: both are
    told, with the cause."""
    before = monitor.get("TLS_FAILED_CNT")
    for old in (False, True):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        if old:
            context.maximum_version = ssl.TLSVersion.TLSv1_1
            context.set_ciphers("ALL:@SECLEVEL=0")
        with socket.create_connection(("127.0.0.1", port)) as connection:
            end = connection.getsockname()[1]
            try:
                context.wrap_socket(connection)
            except (ssl.SSLError, OSError) as e:
                print("client:", e)
        until(lambda: monitor.get("TLS_FAILED_CNT") == before + 1 + old, 40, lambda: str(monitor.get("TLS_FAILED_CNT")))
        event = until(lambda: next((e for e in monitor.lines("IOC_EVENTS").splitlines() if f"TLS with 127.0.0.1:{end}" in e), None), 20,
                      lambda: monitor.lines("IOC_EVENTS"))
        print(event)
        assert ("before the server answered" if old else "the client says: unknown CA (alert 48)") in event, event
        told = time.monotonic()
        until(lambda: time.monotonic() > told + 1.1, 2, "one a second is told")
    return True


def is_named_when_refused(programs, certificates, ioc, monitor):
    """Access security refuses a put over TLS: the query that comes with ebpfMon names record and certificate."""
    monitor.command("ebpfMonQueryStart PUTS_REFUSED")
    until(lambda: "looks at 1 IOC" in "".join(monitor.command("ebpfMonQueryPrint PUTS_REFUSED")), 20, "the query")
    client = Process([programs / "pvxput", ioc.prefix + "SHUT", 1],
                     loopback.client(ioc.port, EPICS_PVA_TLS_KEYCHAIN=str(certificates / "client1.p12")))
    client.wait(60)
    print(client.output())
    until(lambda: re.search(rf"{ioc.prefix}SHUT +x509/client1 +127.0.0.1 +1 ", "".join(monitor.command("ebpfMonQueryPrint PUTS_REFUSED"))), 15,
          lambda: "\n".join(monitor.command("ebpfMonQueryPrint PUTS_REFUSED")))
    return True


def main(pvxs):
    programs, certificates = pvxs / "bin" / paths.ARCH, pvxs / "test" / f"O.{paths.ARCH}"
    commit = subprocess.check_output(["git", "-C", str(pvxs), "log", "-1", "--format=%h"], text=True).strip()
    result = {name: collections.Counter() for name in CLIENTS}
    with tempfile.TemporaryDirectory() as folder:
        tmp, tls_port = Path(folder), loopback.take_port()
        (tmp / "shut.acf").write_text("ASG(DEFAULT) { RULE(1, WRITE, TRAPWRITE) } ASG(SHUT) { RULE(1, READ) }\n")
        ioc = Ioc(tmp, db.READY + db.record("ao", "PV") + db.record("ao", "SHUT", ASG="SHUT"), kind="softIocPVX",
                  program=programs / "softIocPVX", acf=tmp / "shut.acf",
                  environ={"EPICS_PVAS_TLS_KEYCHAIN": str(certificates / "server1.p12"), "EPICS_PVAS_TLS_PORT": str(tls_port)}).start()
        log = PutLog(tmp / "puts.json")
        monitor = Monitor(tmp, before=[log.command(), f'ebpfMonQueryLoad "{paths.MONITOR_BOOT}/queries/records.json"']).start()
        try:
            monitor.wait_ioc(ioc)
            made = put_all(programs, certificates, ioc)
            names = name_readers(programs, certificates, ioc, monitor)
            for line in log.next(len(made), ioc.prefix + "PV", 0, seconds=60):
                name, pid = made[int(line["value"])]
                _, user, method, issuer = CLIENTS[name]
                row = result[name]
                row["puts"] += 1
                row["client"] += (line["user"], line.get("pid")) == (user, str(pid)) and "who_sure" not in line
                row["issuer"] += (line.get("method"), line.get("authority")) == (method, issuer)
            refused = refuse(tls_port, monitor) and is_named_when_refused(programs, certificates, ioc, monitor)
            print("refused handshakes, refused put:", refused)
            for name, named in names.items():
                result[name]["named"] = named
        finally:
            monitor.stop()
            ioc.discard()
    for row in result.values():
        row["commit"], row["date"] = commit, tables.today()
    tables.record("tls", result)
    print("\n".join(f"{name:40} {dict(row)}" for name, row in result.items()))
    return 0 if refused and all(row["named"] for row in result.values()) and all(row["puts"] == row["client"] == row["issuer"] == ROUNDS for row in result.values()) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
