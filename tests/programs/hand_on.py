# SPDX-License-Identifier: BSD-3-Clause
"""Connects to a CA server, and then another process puts, or the same with other rights. Run it as root.

    hand_on HOW UID PORT PV

HOW: pass (to a process of root, SCM_RIGHTS), deferred (the same, but the first write sends the SYN: TCP_FASTOPEN_CONNECT), setuid (root
connects, UID puts), exec (another program puts), reused (UID connects and ends; its child puts, and a process of root has the pid),
mapped-N (user N of a user namespace of UID, in which 0 is UID and 1 to 65535 are from 100000 on). Prints "connected" with the pid that
connects, and "ready"; puts each number of its input."""
import array
import ctypes
import os
import signal
import socket
import sys
import time

from tests.harness import rawca

NEW_USER = 0x10000000  # CLONE_NEWUSER
DEFERRED = 30  # TCP_FASTOPEN_CONNECT, linux/tcp.h
CLONE3 = 435  # linux/unistd.h, on all machines
libc = ctypes.CDLL(None, use_errno=True)


class CloneArgs(ctypes.Structure):
    """struct clone_args of linux/sched.h."""
    _fields_ = [(name, ctypes.c_uint64) for name in "flags pidfd child_tid parent_tid exit_signal stack stack_size tls set_tid set_tid_size "
                "cgroup".split()]


def become(uid):
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def connect(port, deferred=False):
    connection = socket.socket()
    connection.setsockopt(socket.IPPROTO_TCP, DEFERRED, deferred)
    connection.connect(("127.0.0.1", port))
    print("connected", os.getpid(), flush=True)
    return connection


def put(connection, pv):
    client = rawca.RawCa(connection=connection)
    sid = client.sid(pv)
    print("ready", flush=True)
    for line in sys.stdin:
        client.send(rawca.write(sid, rawca.DOUBLE, [float(line)], notify=True, ioid=1))


def get_tick():
    """The time in the unit in which /proc tells when a process has begun."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // (10**9 // os.sysconf("SC_CLK_TCK"))


def wait_for_end_of_parent():
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    signal.pause()


def fork_as(pid):
    """A child with this pid, as a program that restores processes makes it."""
    wanted = (ctypes.c_int * 1)(pid)
    args = CloneArgs(exit_signal=signal.SIGCHLD, set_tid=ctypes.addressof(wanted), set_tid_size=1)
    child = libc.syscall(CLONE3, ctypes.byref(args), ctypes.sizeof(args))
    if child == 0:
        wait_for_end_of_parent()
    assert child == pid, os.strerror(ctypes.get_errno())


def reuse(uid, port, pv):
    begin, end = os.pipe()
    opener = os.fork()
    if opener == 0:
        become(uid)
        connection = connect(port)
        if os.fork() == 0:
            os.read(begin, 1)
            put(connection, pv)
        os._exit(0)
    os.waitpid(opener, 0)
    ended = get_tick()
    while get_tick() < ended + 2:  # what begins one tick after the opener cannot be told from it: both are rounded
        pass
    fork_as(opener)
    os.write(end, b"x")
    signal.pause()


def hand_over(uid, port, pv, deferred):
    here, there = socket.socketpair()
    if os.fork() == 0:
        become(uid)
        connection = connect(port, deferred)
        socket.send_fds(there, [b"x"], [connection.fileno()])
        wait_for_end_of_parent()
    file = socket.recv_fds(here, 1, 1)[1][0]
    put(socket.socket(fileno=file), pv)


def map_users(uid, inner, port, pv):
    made, end = os.pipe()
    mapped, go_on = os.pipe()
    child = os.fork()
    if child == 0:
        become(uid)
        assert libc.unshare(NEW_USER) == 0, os.strerror(ctypes.get_errno())
        os.write(end, b"x")
        os.read(mapped, 1)
        os.setgid(inner)
        os.setuid(inner)
        put(connect(port), pv)
        os._exit(0)
    os.read(made, 1)
    for name in "gid_map", "uid_map":
        with open(f"/proc/{child}/{name}", "w", encoding="ascii") as f:
            f.write(f"0 {uid} 1\n1 100000 65535\n")
    os.write(go_on, b"x")
    os.waitpid(child, 0)


def main(how, uid, port, pv):
    uid, port = int(uid), int(port)
    if how == "reused":
        reuse(uid, port, pv)
    elif how in ("pass", "deferred"):
        hand_over(uid, port, pv, how == "deferred")
    elif how == "setuid":
        connection = connect(port)
        become(uid)
        put(connection, pv)
    elif how == "exec":
        connection = connect(port)
        connection.set_inheritable(True)
        os.execv(sys.executable, [sys.executable, "-u", "-m", "tests.programs.hand_on", "go-on", str(uid), str(connection.fileno()), pv])
    elif how == "go-on":
        put(socket.socket(fileno=port), pv)
    else:
        map_users(uid, int(how.split("-")[1]), port, pv)


if __name__ == "__main__":
    main(*sys.argv[1:])
