# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program under a seccomp filter that kills it for the system calls uprobe and uretprobe. Newer kernels put
these calls into a probed process.

under_seccomp.py kill PROGRAM ARGUMENTS...
under_seccomp.py closed PROGRAM ARGUMENTS...    the program also cannot set a filter (EPERM)

A monitor that cannot set a filter cannot try whether a return probe does harm under one (probe/attach.h).
"""
import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_GET_SECCOMP, PR_SET_SECCOMP = 38, 21, 22  # linux/prctl.h
SECCOMP, PRCTL = 317, 157  # numbers of system calls on x86-64
PROBES = (335, 336)        # uretprobe, uprobe
KILL, EPERM, ALLOW = 0x80000000, 0x00050001, 0x7fff0000  # linux/seccomp.h: SECCOMP_RET_...
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # linux/bpf_common.h


def rule(number, action):
    """Returns the action if the system call has this number."""
    return [(EQUAL, 0, 1, number), (RETURN, 0, 0, action)]


def prctl_rule(option, action):
    return [(EQUAL, 0, 4, PRCTL), (LOAD, 0, 0, 16), (EQUAL, 0, 1, option), (RETURN, 0, 0, action), (LOAD, 0, 0, 0)]


def main(mode, *command):
    code = [(LOAD, 0, 0, 0)]
    for number in PROBES:
        code += rule(number, KILL)
    if mode == "closed":
        code += rule(SECCOMP, EPERM) + prctl_rule(PR_SET_SECCOMP, EPERM)
    code.append((RETURN, 0, 0, ALLOW))
    filter_ = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(filter_)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, 2, program, 0, 0):
        raise OSError(ctypes.get_errno(), "no filter can be set")
    os.execv(command[0], command)


main(*sys.argv[1:])
