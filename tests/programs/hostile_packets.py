# SPDX-License-Identifier: BSD-3-Clause
"""Writes packets that nobody should believe, until its stdin ends: forged sessions, mutated and repeated packets, noise.

    hostile_packets INTERFACE MAC SEED OWN TARGETS

TARGETS: JSON, [[[server, port, PV] ...], [addresses of clients]]; the first server is a watched IOC. Each line of stdin is an IP packet (hex) of a real connection,
whose sequence numbers may be used. OWN 1: the interface is lo of a namespace of our own, so nobody gets the packets; also
sockets with chosen sequence numbers (TCP_REPAIR, tcp(7)) send. OWN 0: other hosts get them; then a packet of a real connection is
one that the host does not take: its checksum or its sequence number is wrong."""
import json
import os
import random
import select
import socket
import struct
import sys
import time

from tests.harness import rawca
from tests.programs.forge_session import ACK, FIN, PSH, RST, SID, SYN, Session, checksum

URG = 32
TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ = 19, 20, 21  # linux/tcp.h
RECEIVE, SEND = 1, 2
FIRST = 5000000  # hostile values are not smaller; real ones are
PAUSE = 0.001    # s between two packets or sessions
USERS = ("root", "daemon", "nobody", "operator")


def session(own, wrong, rng, targets, clients, s=None):
    """Makes a put in a session of its own. "s": sends the bytes of one end; default: packets."""
    server, port, pv = rng.choice(targets)
    forged = None
    if not s:
        forged = Session(own[0], (server, port), (rng.choice(clients), rng.randrange(1025, 65536)), own[1])
        forged.wrong = wrong
        forged.next = [rng.randrange(1 << 32), rng.randrange(1 << 32)]
        forged.open()

        def s(end, data):
            forged.send(end, ACK | PSH, data)
    s(1, rawca.message(rawca.VERSION, count=rawca.MINOR))
    s(0, rawca.message(rawca.VERSION, count=rawca.MINOR) + rawca.message(rawca.USER, rng.choice(USERS).encode() + b"\0") +
      rawca.message(rawca.HOST, b"console\0") + rawca.message(rawca.CREATE, pv.encode() + b"\0", cid=1, extra=rawca.MINOR))
    s(1, rawca.message(22, cid=1, extra=3) + rawca.message(rawca.CREATE, dtype=rawca.DOUBLE, count=1, cid=1, extra=SID))
    notify = rng.random() < 0.8
    s(0, rawca.write(SID, rawca.DOUBLE, [float(rng.randrange(FIRST, 2 * FIRST))], notify=notify, ioid=1))
    if notify:
        s(1, rawca.message(rawca.WRITE_NOTIFY, dtype=rawca.DOUBLE, count=1, cid=rng.choice((1, 1, 376)), extra=1))
    if forged:  # circuits that stay open crowd out others with these addresses, which is counted and not tried here
        forged.close()


def repaired(rng, targets, clients, base):
    """Two real sockets with both sequence numbers of our choice: those of a real connection, or any."""
    server, port, _ = rng.choice(targets)
    ends, seqs = [(rng.choice(clients), rng.randrange(1025, 65536)), (server, port)], [rng.randrange(1 << 32), rng.randrange(1 << 32)]
    if base and rng.random() < 0.7:
        head = (base[0] & 15) * 4
        ports, seqs = struct.unpack_from(">HH", base, head), list(struct.unpack_from(">II", base, head + 4))
        ends = [(socket.inet_ntoa(base[12 + 4 * i:16 + 4 * i]), ports[i]) for i in (0, 1)]
        if ports[1] not in [t[1] for t in targets]:
            ends.reverse()
            seqs.reverse()
    made = [socket.socket(), socket.socket()]
    try:
        for i, s in enumerate(made):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
            s.bind(ends[i])
            for queue, seq in (SEND, seqs[i]), (RECEIVE, seqs[1 - i]):
                s.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, queue)
                s.setsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ, struct.pack("I", seq))
            s.connect(ends[1 - i])
        for s in made:
            s.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 0)
        session(None, 0, rng, targets, clients, lambda end, data: made[end].sendall(data))
        return 1
    except OSError:  # such an address is not ours, or the ports are in use
        return 0
    finally:
        for s in made:
            s.close()


def mutate(rng, packet, own, clients, ioc):
    """A packet of a real connection, changed: another value, flag, sequence number, address or byte."""
    head = (packet[0] & 15) * 4
    ip, tcp = bytearray(packet[:head]), bytearray(packet[head:])
    data = (tcp[12] >> 4) * 4
    moved = own
    for _ in range(rng.randrange(1, 4)):
        how = rng.randrange(6)
        if how == 0 and len(tcp) - data >= 24:
            tcp[-8:] = struct.pack(">d", rng.randrange(FIRST, 2 * FIRST))
        elif how == 1:
            tcp[13] = rng.choice((RST, RST | ACK, SYN, SYN | ACK, FIN | ACK, PSH | ACK | URG, 0))
        elif how == 2:
            seq, = struct.unpack_from(">I", packet, head + 4)
            struct.pack_into(">I", tcp, 4, (seq + (1 << 31) + rng.randrange(-1 << 29, 1 << 29)) % (1 << 32))
            moved = 1
        elif how == 3:
            ip[12:16] = socket.inet_aton(rng.choice(clients))
            tcp[0:2] = struct.pack(">H", rng.randrange(1025, 65536))
            moved = 1
        elif how == 4 and len(tcp) > data:
            tcp[rng.randrange(data, len(tcp))] = rng.randrange(256)
        elif how == 5:
            struct.pack_into(">H", tcp, 14, rng.randrange(65536))
    ip[10:12] = tcp[16:18] = b"\0\0"
    ip[10:12] = struct.pack(">H", checksum(bytes(ip)))
    pseudo = bytes(ip[12:20]) + struct.pack(">BBH", 0, 6, len(tcp))
    right, wrong = checksum(pseudo + bytes(tcp)), checksum(pseudo + bytes(tcp)) ^ 0x5500
    if ioc in struct.unpack_from(">HH", tcp) and rng.random() < 0.3:
        wrong = checksum(pseudo) ^ 0xffff  # as if a network card were to compute it
    # a host takes a packet with the right checksum and a sequence number that it awaits: that would be a real put
    tcp[16:18] = struct.pack(">H", right if moved else wrong)
    return bytes(ip + tcp)


def noise(rng, targets, clients):
    server, port, _ = rng.choice(targets)
    tcp = struct.pack(">HHIIBBHHH", rng.randrange(1025, 65536), port, rng.randrange(1 << 32), rng.randrange(1 << 32), 5 << 4,
                      rng.randrange(64), 1000, 0, 0) + rng.randbytes(rng.randrange(200))
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), rng.randrange(65536), 0, 64, 6, 0) + \
        socket.inet_aton(rng.choice(clients)) + socket.inet_aton(server)
    tcp = tcp[:16] + struct.pack(">H", checksum(ip[12:20] + struct.pack(">BBH", 0, 6, len(tcp)) + tcp)) + tcp[18:]
    return ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:] + tcp


def main(interface, mac, seed, own, targets):
    rng, own = random.Random(int(seed)), int(own)
    targets, clients = json.loads(targets)
    ether = bytes.fromhex(mac.replace(":", ""))
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    raw.bind((interface, 0x0800))
    bases, sent, left, repairs = [], 0, b"", 0
    os.set_blocking(0, False)
    while True:
        if select.select([0], [], [], PAUSE)[0]:
            more = os.read(0, 65536)
            if not more:
                break
            *lines, left = (left + more).split(b"\n")
            bases = (bases + [bytes.fromhex(line.decode()) for line in lines])[-200:]
        how = rng.random()
        try:
            if own and how < 0.05:
                repairs += repaired(rng, targets, clients, rng.choice(bases) if bases else None)
            elif how < 0.1:
                session((interface, ether), rng.random() < 0.3, rng, targets, clients)
            elif bases and how < 0.9:
                raw.send(ether + b"\2\0\0\0\0\1\x08\x00" + mutate(rng, rng.choice(bases), own, clients, targets[0][1]))
            else:
                raw.send(ether + b"\2\0\0\0\0\1\x08\x00" + noise(rng, targets, clients))
            sent += 1
        except OSError:
            time.sleep(PAUSE)
    print(f"done {sent} {repairs}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
