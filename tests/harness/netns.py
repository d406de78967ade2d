# SPDX-License-Identifier: BSD-3-Clause
"""A network namespace for this process: it has a loopback interface and nothing else."""
import ctypes
import fcntl
import os
import socket
import struct

CLONE_NEWNET = 0x40000000  # linux/sched.h
SIOCSIFFLAGS = 0x8914      # linux/sockios.h
IFF_UP = 1                 # linux/if.h


def enter_new():
    """This thread, and all threads and processes that it starts later, get a new network namespace. Call it in the main
    thread and early: other threads of the process keep the old one."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, f"cannot make a network namespace: {os.strerror(error)}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
