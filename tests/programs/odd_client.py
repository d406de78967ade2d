# SPDX-License-Identifier: BSD-3-Clause
"""A CA client whose connection is made, or written to, in a way that is not usual; it puts a number of its stdin.

    odd_client HOW PORT PV

HOW: uring (io_uring(7), by a thread of the kernel), mptcp, options (of IP), vmsplice (pages that it changes after it has sent them: the
server gets the number and a half, if it reads them late)."""
import ctypes
import mmap
import os
import socket
import struct
import sys

from tests.harness import rawca

libc = ctypes.CDLL(None, use_errno=True)
SETUP, ENTER, VMSPLICE = 425, 426, 278  # linux/unistd.h
SQPOLL, CONNECT, SEND = 2, 16, 26  # linux/io_uring.h
WAKE_AND_WAIT = 3


class Ring:
    """A socket that is used by io_uring only; one request at a time."""

    def __init__(self, port):
        self.socket, params = socket.socket(), (ctypes.c_uint32 * 30)()
        params[2], params[4] = SQPOLL, 1000
        self.ring = libc.syscall(SETUP, 8, params)
        assert self.ring >= 0, os.strerror(ctypes.get_errno())
        (_, self.tail, _, _, _, _, self.array), (self.head, _, _, _, _, self.done) = params[10:17], params[20:26]
        self.rings, self.requests = mmap.mmap(self.ring, 8192), mmap.mmap(self.ring, 512, offset=0x10000000)
        self.count = 0
        assert self.do(CONNECT, struct.pack("=HH4s8x", socket.AF_INET, socket.htons(port), socket.inet_aton("127.0.0.1")), 0, 16) == 0

    def do(self, what, data, length, offset=0):
        data = ctypes.create_string_buffer(data, len(data))
        self.requests[:64] = struct.pack("BBHiQQI36x", what, 0, 0, self.socket.fileno(), offset, ctypes.addressof(data), length)
        struct.pack_into("I", self.rings, self.array + 4 * (self.count % 8), 0)
        self.count += 1
        struct.pack_into("I", self.rings, self.tail, self.count)
        libc.syscall(ENTER, self.ring, 0, 1, WAKE_AND_WAIT, 0, 0)
        result = struct.unpack_from("Qi", self.rings, self.done + 16 * ((self.count - 1) % 16))[1]
        struct.pack_into("I", self.rings, self.head, self.count)
        return result

    def sendall(self, data):
        assert self.do(SEND, data, len(data)) == len(data)

    def __getattr__(self, name):
        return getattr(self.socket, name)


class Pages:
    """A socket that sends a page, which is changed later."""

    def __init__(self, connection):
        self.socket, self.page = connection, mmap.mmap(-1, mmap.PAGESIZE)

    def sendall(self, data):
        self.page[:len(data)] = data
        out, end = os.pipe()
        place = (ctypes.c_uint64 * 2)(ctypes.addressof(ctypes.c_char.from_buffer(self.page)), len(data))
        assert libc.syscall(VMSPLICE, end, place, 1, 0) == os.splice(out, self.socket.fileno(), len(data)) == len(data)
        value, = struct.unpack(">d", data[-8:])
        self.page[len(data) - 8:len(data)] = struct.pack(">d", value + 0.5)


def connect(how, port):
    if how == "uring":
        return Ring(port)
    connection = socket.socket(proto=262 if how == "mptcp" else 0)  # IPPROTO_MPTCP
    if how == "options":
        connection.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, bytes([1] * 7 + [0]))  # "no operation", end
    connection.connect(("127.0.0.1", port))
    return connection


def main(how, port, pv):
    client = rawca.RawCa(connection=connect(how, int(port)))
    sid = client.sid(pv)
    if how == "vmsplice":
        client.socket = Pages(client.socket)
    print("ready", flush=True)
    client.send(rawca.write(sid, rawca.DOUBLE, [float(sys.stdin.readline())]))
    print("sent", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
