# SPDX-License-Identifier: BSD-3-Clause
"""Where things are, and the environment that keeps Channel Access and pvAccess on the loopback interface.

Clients in this process (pyepics) have one address list for all their life, so the ports of all servers are
chosen here, once: a pool from which each server takes one.
"""
import os
import random
import socket
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
BASE = Path(os.environ["EPICS_BASE"])
ARCH = os.environ.get("EPICS_HOST_ARCH") or subprocess.check_output(
    ["perl", str(BASE / "lib/perl/EpicsHostArch.pl")], text=True).strip()
BASE_BIN = BASE / "bin" / ARCH
TESTS = TOP / "tests"
LATENCY_IOC = TESTS / "ioc" / f"O.{ARCH}" / "latencyIoc"
LATENCY_DBD = TESTS / "ioc" / "O.Common" / "latencyIoc.dbd"
ROADS_IOC = TESTS / "ioc" / f"O.{ARCH}" / "roadsIoc"
ROADS_DBD = TESTS / "ioc" / "O.Common" / "roadsIoc.dbd"
MONITOR = TOP / "bin" / ARCH / "ebpfMon"
MONITOR_BOOT = TOP / "iocBoot" / "iocEbpfMon"
DB = TOP / "db"
HOST = socket.gethostname()


def _free(port):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


def _pick(number):
    """Free ports below the range that the kernel hands out to clients."""
    ports = random.sample(range(20000, 29000), 8 * number)
    found = [p for p in ports if _free(p)][:number]
    assert len(found) == number, "no free ports on 127.0.0.1"
    return found


REPEATER_PORT = _pick(1)[0]
_pool = _pick(32)

LOOPBACK = {
    "EPICS_CA_ADDR_LIST": " ".join(f"127.0.0.1:{p}" for p in _pool),
    "EPICS_CA_AUTO_ADDR_LIST": "NO",
    "EPICS_CA_REPEATER_PORT": str(REPEATER_PORT),
    "EPICS_CAS_INTF_ADDR_LIST": "127.0.0.1",
    "EPICS_CAS_BEACON_ADDR_LIST": "127.0.0.1",
    "EPICS_CAS_AUTO_BEACON_ADDR_LIST": "NO",
    "EPICS_CAS_BEACON_PORT": str(REPEATER_PORT),
    "EPICS_PVA_ADDR_LIST": "127.0.0.1",
    "EPICS_PVA_AUTO_ADDR_LIST": "NO",
    "EPICS_PVAS_INTF_ADDR_LIST": "127.0.0.1",
    "EPICS_PVAS_BEACON_ADDR_LIST": "127.0.0.1",
    "EPICS_PVAS_AUTO_BEACON_ADDR_LIST": "NO",
}


def setup():
    """Before the first client library is imported."""
    for name in [n for n in os.environ if n.startswith(("EPICS_CA", "EPICS_PVA"))]:
        del os.environ[name]
    os.environ.update(LOOPBACK)
    os.environ["EPICS_HOST_ARCH"] = ARCH
    os.environ["EPICS_IOCSH_HISTFILE"] = ""  # a shell with history would leave a file of it in the tree


def take_port():
    return _pool.pop(0)


def give_port(port):
    _pool.append(port)


def server_env(port, **more):
    """Environment of a server: its CA port, and PVA ports of its own (searched for at that very port)."""
    env = dict(os.environ)
    env.update(LOOPBACK)
    env.update(EPICS_CA_SERVER_PORT=str(port), EPICS_PVAS_SERVER_PORT=str(port + 1000),
               EPICS_PVAS_BROADCAST_PORT=str(port + 2000), EPICS_PVA_BROADCAST_PORT=str(port + 2000),
               EPICS_PVA_SERVER_PORT=str(port + 1000))
    env.update({k: str(v) for k, v in more.items()})
    return env


def client_env(port):
    """Environment of a client program that is to find one server only."""
    env = dict(os.environ)
    env["EPICS_CA_ADDR_LIST"] = f"127.0.0.1:{port}"
    env["EPICS_PVA_BROADCAST_PORT"] = str(port + 2000)
    return env


def pva_conf(*ports):
    """Configuration of a p4p context that finds these servers."""
    return {"EPICS_PVA_ADDR_LIST": " ".join(f"127.0.0.1:{p + 2000}" for p in ports),
            "EPICS_PVA_AUTO_ADDR_LIST": "NO",
            "EPICS_PVAS_INTF_ADDR_LIST": "127.0.0.1"}
