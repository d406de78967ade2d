# SPDX-License-Identifier: BSD-3-Clause
"""Processes at the ends of a link between network namespaces."""
import os
import subprocess
import sys

from . import badlink, loopback
from .ioc import Ioc
from .process import Process
from .wait import until


def there(end, argv, environ=None, **popen):
    return Process(badlink.in_namespace(end, argv), environ or dict(os.environ), **popen)


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
        self.process = there(self.end, self.argv(), environ, cwd=self.tmp)
        program = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1)"
        until(lambda: subprocess.run(badlink.in_namespace(
            self.end, [sys.executable, "-c", program, self.address, self.port + 1000 * ("p4p" in self.files)]),
            stderr=subprocess.DEVNULL).returncode == 0 or not self.running, 20, self.process.output)
        assert self.running, self.process.output()
        return self
