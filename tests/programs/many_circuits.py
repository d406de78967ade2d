# SPDX-License-Identifier: BSD-3-Clause
"""Opens so many connections of Channel Access between two ends of its own, on loopback, and keeps them until its input ends.

    many_circuits COUNT"""
import socket
import sys

from tests.harness import rawca


def main(count):
    listener = socket.create_server(("127.0.0.1", 0))
    hello = rawca.message(rawca.VERSION, count=rawca.MINOR)
    ends = []
    for i in range(int(count)):
        client = socket.create_connection(listener.getsockname())
        server = listener.accept()[0]
        client.sendall(hello + rawca.message(rawca.CREATE, b"X\0", cid=1, extra=rawca.MINOR))
        server.sendall(hello + rawca.message(rawca.CREATE, dtype=rawca.DOUBLE, count=1, cid=1, extra=1))
        ends += [client, server]
    print("open", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
