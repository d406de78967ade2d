# SPDX-License-Identifier: BSD-3-Clause
"""Processes at the ends of a link between network namespaces."""
import os
import socket
import struct
from pathlib import Path

from . import badlink, loopback
from .ioc import Ioc
from .process import Process
from .wait import until

LISTEN = "0A"  # TCP_LISTEN, net/tcp_states.h


def there(end, argv, environ=None, **popen):
    return Process(badlink.in_namespace(end, argv), environ or dict(os.environ), **popen)


def listens(pid, address, port):
    """True if a socket listens at this address in the network namespace of the process."""
    local = f"{struct.unpack('=I', socket.inet_aton(address))[0]:08X}:{port:04X}"
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        _, at, _, state, *_ = line.split()
        if at in (local, f"{0:08X}:{port:04X}") and state == LISTEN:
            return True
    return False


class FarIoc(Ioc):
    """An IOC at one end of a link (badlink.BadLink, default: link.b; lan.Lan). The other ends can reach its address."""

    def __init__(self, tmp, link, end=None, **how):
        super().__init__(tmp, **how)
        self.link = link
        self.end = end or link.b
        self.address = link.address(self.end)

    def start(self):
        environ = loopback.server(self.port, IOC=self.name, **self.environ)
        for name in ("EPICS_CAS_INTF_ADDR_LIST", "EPICS_PVAS_INTF_ADDR_LIST"):
            environ[name] = self.address
        self.process = there(self.end, self.argv(), environ, cwd=self.tmp, may_lock=False)
        port = self.port + 1000 * ("p4p" in self.files)
        until(lambda: not self.running or listens(self.pid, self.address, port), 20, self.process.output)
        assert self.running, self.process.output()
        return self
