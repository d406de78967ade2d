# SPDX-License-Identifier: BSD-3-Clause
"""forge_many INTERFACE MAC SERVER:PORT CLIENT PV: for each line of stdin, a number, writes the packets of so many sessions of Channel
Access that stay open, of both ends. No socket has one of them."""
import itertools
import sys

from tests.harness import rawca
from tests.programs.forge_session import ACK, PSH, SID, Session, place


def main(interface, mac, server, client, pv):
    ports = itertools.count(2000)
    s = Session(interface, place(server), (client, 0), bytes.fromhex(mac.replace(":", "")))
    s.pause = 0
    for line in sys.stdin:
        for _ in range(int(line)):
            s.ends[0], s.next = (client, next(ports)), [1000, 90000]
            s.open()
            s.send(0, ACK | PSH, rawca.message(rawca.VERSION, count=rawca.MINOR) + rawca.message(rawca.USER, b"root\0") +
                   rawca.message(rawca.HOST, b"console\0") + rawca.message(rawca.CREATE, pv.encode() + b"\0", cid=1, extra=rawca.MINOR))
            s.send(1, ACK | PSH, rawca.message(rawca.VERSION, count=rawca.MINOR) + rawca.message(22, cid=1, extra=3) +
                   rawca.message(rawca.CREATE, dtype=rawca.DOUBLE, count=1, cid=1, extra=SID))
        print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
