# SPDX-License-Identifier: BSD-3-Clause
"""A server of Channel Access that is no IOC: it gives each client a channel of type double, and answers each write-notify.

    raw_server ADDRESS PORT"""
import socket
import struct
import sys
import threading

from tests.harness import rawca

HEAD = struct.Struct(">HHHHII")
ECA_NORMAL = 1  # caerr.h


def answer(command, dtype, count, cid, extra):
    if command == rawca.CREATE:
        return rawca.message(22, cid=cid, extra=3) + rawca.message(rawca.CREATE, dtype=rawca.DOUBLE, count=1, cid=cid, extra=77)
    if command == rawca.WRITE_NOTIFY:
        return rawca.message(rawca.WRITE_NOTIFY, dtype=dtype, count=count, cid=ECA_NORMAL, extra=extra)
    return b""


def serve(client):
    try:
        answer_all(client)
    except ConnectionError:  # the client has reset it
        pass
    client.close()


def answer_all(client):
    client.sendall(rawca.message(rawca.VERSION, count=rawca.MINOR))
    data = b""
    while more := client.recv(65536):
        data += more
        while len(data) >= HEAD.size and len(data) >= HEAD.size + HEAD.unpack(data[:HEAD.size])[1]:
            command, size, *rest = HEAD.unpack(data[:HEAD.size])
            data = data[HEAD.size + size:]
            client.sendall(answer(command, *rest))


def main(address, port):
    with socket.create_server((address, int(port))) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 16)
        print("listens", flush=True)
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
