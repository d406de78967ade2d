# SPDX-License-Identifier: BSD-3-Clause
"""Channel Access and pvAccess on the loopback interface: ports, and the environment of servers and clients.

The client library of this process (pyepics) keeps its address list until the process ends. So the ports of all servers
are chosen here, once per process, and each server takes one of them. A server at port N has its pvAccess ports at
N + 1000 (TCP) and N + 2000 (UDP).
"""
import os
import random
import socket

SERVERS = 40
_FIRST, _LAST = 20000, 29000  # below the ports that the kernel gives to clients


def _is_free(port):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


def _choose_ports(number):
    """So many successive ports, with their pvAccess ports."""
    for first in random.sample(range(_FIRST, _LAST, number), 50):
        block = range(first, first + number)
        if all(_is_free(p + more) for p in block for more in (0, 1000, 2000)):
            return list(block)
    raise RuntimeError("no free ports on 127.0.0.1")


REPEATER_PORT, *_ports = _choose_ports(1 + SERVERS)


def take_port():
    """Takes a port that no other server of this process has. The caller gives it back."""
    return _ports.pop(0)


def give_port(port):
    _ports.append(port)


def _addresses(ports):
    return " ".join(f"127.0.0.1:{p}" for p in ports)


SETTINGS = {
    "EPICS_CA_ADDR_LIST": _addresses(_ports),
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
    "EPICS_IOCSH_HISTFILE": "",  # a shell with history would leave its file in the tree
}


def environment(**more):
    """The environment of this process, with Channel Access and pvAccess on the loopback interface only. Of the
    variables of EPICS only the path of EPICS Base stays."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("EPICS_") or k in ("EPICS_BASE", "EPICS_HOST_ARCH")}
    return {**kept, **SETTINGS, **{k: str(v) for k, v in more.items()}}


def server(port, **more):
    """The environment of a server at this port."""
    return environment(EPICS_CA_SERVER_PORT=port, EPICS_PVAS_SERVER_PORT=port + 1000, EPICS_PVA_SERVER_PORT=port + 1000,
                       EPICS_PVAS_BROADCAST_PORT=port + 2000, EPICS_PVA_BROADCAST_PORT=port + 2000, **more)


def client(*ports, **more):
    """The environment of a client program that finds the servers at these ports; by pvAccess the first one only."""
    return environment(EPICS_CA_ADDR_LIST=_addresses(ports), EPICS_PVA_BROADCAST_PORT=ports[0] + 2000, **more)


def pva_context(*ports, name_server="", **how):
    """A p4p context that finds these servers, or asks "name_server" only (ADDRESS:PORT, TCP). Only tests that use p4p import it,
    because that takes half a second."""
    from p4p.client.thread import Context
    conf = {"EPICS_PVA_ADDR_LIST": "" if name_server else _addresses(p + 2000 for p in ports),
            "EPICS_PVA_NAME_SERVERS": name_server,
            "EPICS_PVA_AUTO_ADDR_LIST": "NO",
            "EPICS_PVAS_INTF_ADDR_LIST": "127.0.0.1"}
    return Context("pva", conf=conf, useenv=False, **how)


def use():
    """Gives this process that environment. Call it before the first client library is imported."""
    changed = environment()
    os.environ.clear()
    os.environ.update(changed)
