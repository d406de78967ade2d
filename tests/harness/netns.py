# SPDX-License-Identifier: BSD-3-Clause
"""A network namespace for this process. It has a loopback interface only."""
import ctypes
import fcntl
import os
import socket
import struct

CLONE_NEWNET = 0x40000000  # linux/sched.h
SIOCSIFFLAGS = 0x8914      # linux/sockios.h
IFF_UP = 1                 # linux/if.h


def enter_new():
    """Gives a new network namespace to this thread and to all threads and processes that it starts later. Call it
    early and in the main thread: other threads keep the old namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, f"cannot make a network namespace: {os.strerror(error)}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
