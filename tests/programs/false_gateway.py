# SPDX-License-Identifier: BSD-3-Clause
"""A gateway whose client is nobody: it is connected to an IOC where it was started, and serves in a network namespace of its own, where
it writes the packets of a client on "another host" by itself.

    false_gateway PID IOC:PORT PORT PV VALUE

PID: a process in that namespace. PORT: where it serves. Prints "made", and answers its client when it gets a line."""
import ctypes
import os
import socket
import subprocess
import sys

from tests.harness import rawca
from tests.programs import raw_server
from tests.programs.forge_session import place

HERE, THERE = "198.51.100.1", "198.51.100.7"


def enter(pid):
    files = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in ("user", "net")]
    for file in files:
        assert ctypes.CDLL(None).setns(file, 0) == 0


def ip(args):
    subprocess.run(["ip", *args.split()], check=True)


def main(pid, ioc, port, pv, value):
    address, at = place(ioc)
    inner = rawca.RawCa(at, addr=address)
    inner.sid(pv)
    enter(pid)
    for args in (f"addr replace {HERE}/32 dev lo", f"route replace {THERE}/32 dev lo"):
        ip(args)
    answer = raw_server.answer

    def pass_on(command, *rest):
        if command == rawca.WRITE_NOTIFY:
            assert inner.put(pv, rawca.DOUBLE, [float(value)], notify=True) == 1
            print("made", flush=True)
            sys.stdin.readline()
        return answer(command, *rest)

    raw_server.answer = pass_on
    with socket.create_server((HERE, int(port))) as listener:
        client = subprocess.Popen([sys.executable, "-m", "tests.programs.put_raw", "lo", "00:00:00:00:00:00", f"{HERE}:{port}",
                                   f"{THERE}:40300", pv, value])
        raw_server.serve(listener.accept()[0])
        client.wait()
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
