# SPDX-License-Identifier: BSD-3-Clause
"""Puts over TLS by clients with several certificates and by some without, six at a time: does the monitor name each as its client
knows itself? tools/modules.sh builds pvxs with TLS and runs this."""
import collections
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.harness import netns, loopback

netns.enter_new()
loopback.use()  # before a client library is imported

from tests.harness import db, paths, tables  # noqa: E402
from tests.harness.ioc import Ioc  # noqa: E402
from tests.harness.monitor import Monitor  # noqa: E402
from tests.harness.process import Process  # noqa: E402
from tests.harness.putlog import PutLog  # noqa: E402

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


def main(pvxs):
    programs, certificates = pvxs / "bin" / paths.ARCH, pvxs / "test" / f"O.{paths.ARCH}"
    commit = subprocess.check_output(["git", "-C", str(pvxs), "log", "-1", "--format=%h"], text=True).strip()
    result = {name: collections.Counter() for name in CLIENTS}
    with tempfile.TemporaryDirectory() as folder:
        tmp = Path(folder)
        ioc = Ioc(tmp, db.READY + db.record("ao", "PV"), kind="softIocPVX", program=programs / "softIocPVX",
                  environ={"EPICS_PVAS_TLS_KEYCHAIN": str(certificates / "server1.p12"), "EPICS_PVAS_TLS_PORT": "0"}).start()
        log = PutLog(tmp / "puts.json")
        monitor = Monitor(tmp, before=[log.command()]).start()
        try:
            monitor.wait_ioc(ioc)
            made = put_all(programs, certificates, ioc)
            for line in log.next(len(made), ioc.prefix + "PV", 0, seconds=60):
                name, pid = made[int(line["value"])]
                _, user, method, issuer = CLIENTS[name]
                row = result[name]
                row["puts"] += 1
                row["client"] += (line["user"], line.get("pid")) == (user, str(pid)) and "who_sure" not in line
                row["issuer"] += (line.get("method"), line.get("authority")) == (method, issuer)
        finally:
            monitor.stop()
            ioc.discard()
    for row in result.values():
        row["commit"], row["date"] = commit, tables.today()
    tables.record("tls", result)
    print("\n".join(f"{name:40} {dict(row)}" for name, row in result.items()))
    return 0 if all(row["puts"] == row["client"] == row["issuer"] == ROUNDS for row in result.values()) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
