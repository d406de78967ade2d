# SPDX-License-Identifier: BSD-3-Clause
"""A container as podman and docker make them: namespaces of user, mounts, pids, network, host name and IPC, a root of overlayfs, and
a cgroup named like its id. Its programs are those of this host."""
import contextlib
import os
import secrets
import shlex
import subprocess
from pathlib import Path

from . import loopback, paths
from .process import Process
from .wait import until

OUTER = r"""
set -e
mount -t tmpfs none {top}
mkdir {top}/upper {top}/work {top}/root
mount -t overlay -o lowerdir=/,upperdir={top}/upper,workdir={top}/work none {top}/root
mount --rbind /dev {top}/root/dev
exec unshare --user --map-root-user --mount --pid --fork --kill-child --net --uts --ipc sh -c {inner}
"""
INNER = r"""
set -e
mount -t proc none {top}/root/proc
hostname {host}
ip link set lo up
exec chroot {top}/root sh -c {command}
"""


# Of versions 1 and 2: the folder, the file that freezes, what it then says.
FREEZERS = [(g, f, on, off) for g, f, on, off in ((Path("/sys/fs/cgroup/freezer"), "freezer.state", "FROZEN", "THAWED"), (Path("/sys/fs/cgroup/unified"), "cgroup.freeze", "1", "0"),
                                                  (Path("/sys/fs/cgroup"), "cgroup.freeze", "1", "0")) if (g / "cgroup.procs").exists()]


@contextlib.contextmanager
def frozen(pid, top, file, on, off):
    """The process is in a group that is frozen, as docker pause does it; then it goes on, and is where it was."""
    group = top / f"ebpfMonTest{os.getpid()}"
    group.mkdir()
    (group / "cgroup.procs").write_text(str(pid))
    try:
        (group / file).write_text(on)
        yield
    finally:
        (group / file).write_text(off)
        (top / "cgroup.procs").write_text(str(pid))
        until(lambda: not (group / "cgroup.procs").read_text(), 10, "it is empty")
        group.rmdir()


def _cgroup():
    """The folder in which a cgroup can be made."""
    top = Path("/sys/fs/cgroup")
    return top / "pids" if (top / "pids").is_dir() else top


def missing(tmp):
    """Why no container can be made; empty if one can."""
    top = tmp / "trial"
    top.mkdir(exist_ok=True)
    script = OUTER.split("mount --rbind")[0].format(top=top) + "exec unshare --user --map-root-user --mount --pid --fork --net true"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True)
    return done.stderr if done.returncode else "" if os.access(_cgroup(), os.W_OK) else "no cgroup can be made"


class Container:
    """A container in which a shell runs "command". pid: the process id of its first process, as this host sees it."""

    def __init__(self, tmp, command, host, port, **environ):
        self.id = secrets.token_hex(32)
        top = tmp / self.id[:12]
        top.mkdir()
        self.cgroup = _cgroup() / f"docker-{self.id}.scope"
        self.cgroup.mkdir()
        inner = INNER.format(top=top, host=host, command=shlex.quote(command))
        script = f"echo $$ >{self.cgroup}/cgroup.procs\n" + OUTER.format(top=top, inner=shlex.quote(inner))
        self.process = Process(["unshare", "--mount", "sh", "-c", script], loopback.server(port, **environ))
        self.port = port
        self.top = top

    def _first(self):
        """The process that has pid 1 in the container: the only child of unshare."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return path.read_text().split()

    @property
    def pid(self):
        return int(until(self._first, 20, self.process.output)[0])

    def wait_line(self, line):
        return self.process.wait_line(line)

    def run(self, program, *args):
        """Runs a client program of Base in it."""
        command = ["nsenter", "--target", str(self.pid), "--user", "--preserve-credentials", "--mount", "--net", "--uts", "--ipc", "--pid",
                   "--root", "--wd", str(paths.BASE_BIN / program), *map(str, args)]
        script = f"echo $$ >{self.cgroup}/cgroup.procs; exec {shlex.join(command)}"
        return subprocess.run(["sh", "-c", script], env=loopback.client(self.port), text=True, capture_output=True, timeout=120,
                              stdin=subprocess.DEVNULL)

    def discard(self):
        self.process.close()
        until(lambda: not (self.cgroup / "cgroup.procs").read_text(), 20, "the container is empty")
        os.rmdir(self.cgroup)
