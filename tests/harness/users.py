# SPDX-License-Identifier: BSD-3-Clause
"""IOCs of users without privileges, also in network namespaces of their own."""
import shutil
import tempfile
from pathlib import Path

from . import paths
from .ioc import Ioc

FIRST, SECOND = 54321, 54322  # user ids that no host uses


def as_user(uid):
    """The command in front of a program that this user runs."""
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


class Folder:
    """A folder that all users can read, as EPICS Base may be in one that only root can: softIoc, and what it needs."""

    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix="ebpfMonUsers"))
        self.path.chmod(0o755)
        self.softioc, self.dbd = self.path / "softIoc", self.path / "softIoc.dbd"
        self.libraries = self.path / "lib"
        self.libraries.mkdir()
        shutil.copy(paths.BASE_BIN / "softIoc", self.softioc)
        shutil.copy(paths.BASE / "dbd" / "softIoc.dbd", self.dbd)
        for library in (paths.BASE / "lib" / paths.ARCH).glob("lib*.so*"):
            if library.name.startswith(("libdb", "libca.", "libCom.")):
                shutil.copy(library, self.libraries)

    def discard(self):
        shutil.rmtree(self.path)


class UsersIoc(Ioc):
    """An IOC of this user. "own": in user and network namespaces of its own."""

    def __init__(self, folder, uid, db, own=False, **how):
        unshare = ["unshare", "-Urn", "--kill-child", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"] if own else []
        environ = {"LD_LIBRARY_PATH": str(folder.libraries), "HOME": str(folder.path)}
        super().__init__(folder.path, db, wrap=[*as_user(uid), *unshare], environ=environ, program=folder.softioc, **how)
        self.dbd = folder.dbd

    def argv(self):
        program, *rest = super().argv()
        return [program, "-D", self.dbd, *rest]

    def start(self, wait=True, **how):
        super().start(wait=False, **how)
        if wait:
            self.process.wait_line("iocRun: All initialization complete")
        return self

    def discard(self):
        if self.running:
            self.process.kill()
        super().discard()
