# SPDX-License-Identifier: BSD-3-Clause
"""Two network namespaces and a link between them that loses, repeats and reorders frames.

    with BadLink(loss=0.02, reorder=0.1, dup=0.01, seed=1) as link:
        server = link.run_in(link.b, ["softIoc", …])      # binds link.addrB
        client = link.run_in(link.a, ["caput", …])        # a Popen; ended with the link at the latest
        link.counts()                                     # {"forwarded": …, "dropped": …, …}

With nat=True a translator is in between (translate.py). b sees messages to natB as coming from natA, with other ports.
It sees messages to movedB as coming from movedA, with other TCP sequence numbers, too. Messages to addrB stay
unchanged.

netem of Linux would do the same, but not every kernel has it. A third namespace has the other ends of both interfaces,
and a process there (this file, run as a program) carries each frame from one interface to the other. Segmentation and
checksum offload are off: each frame is one as on a cable, and a lost frame is one lost segment. Each direction draws
its faults from a random generator with a seed; which frames get them still depends on timing. ARP has no faults.
"""
import argparse
import collections
import ctypes
import errno
import fcntl
import itertools
import json
import os
import random
import re
import select
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

from .translate import Translator

PREFIX = "ebpfmon-link"
RUN = Path("/run/netns")
INTERFACE = "link0"
HELD = 0.005      # s; a frame waits at most so long until other frames have overtaken it
OVERTAKEN = 3     # so many frames overtake it at most


def ip(*args):
    done = subprocess.run(["ip", *args], check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(args)}: {done.stderr.strip()}")
    return done.stdout


def in_namespace(name, argv):
    """The command that runs in the namespace. "ip netns exec" would hide what is mounted below /sys."""
    return ["nsenter", f"--net={RUN / name}", "--", *map(str, argv)]


def remove_left():
    """Removes namespaces of test runs that were killed."""
    for name in os.listdir(RUN) if RUN.is_dir() else ():
        match = re.fullmatch(PREFIX + r"-(\d+)-\d+-[abc]", name)
        if match and not Path("/proc", match[1]).exists():
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


class BadLink:
    numbers = itertools.count()
    addrA, addrB = "192.0.2.1", "192.0.2.2"  # RFC 5737: for documentation, no real host has them
    natA, natB, movedA, movedB = "192.0.2.101", "192.0.2.102", "192.0.2.103", "192.0.2.104"
    moved_first = 0xffffff00  # first sequence number for b: it passes 2**32 after some messages

    def __init__(self, loss=0.0, reorder=0.0, dup=0.0, seed=1, mtu=1500, nat=False):
        self.faults = ["--loss", loss, "--reorder", reorder, "--dup", dup, "--seed", seed]
        self.nat = nat
        self.mtu = mtu
        base = f"{PREFIX}-{os.getpid()}-{next(self.numbers)}"
        self.a, self.b, self.middle = (f"{base}-{end}" for end in "abc")
        self._made, self._started, self._forwarder = [], [], None

    def __enter__(self):
        remove_left()
        try:
            for name in (self.middle, self.a, self.b):
                ip("netns", "add", name)
                self._made.append(name)
                ip("-n", name, "link", "set", "lo", "up")
            for name, end, addr in ((self.a, "linkA", self.addrA), (self.b, "linkB", self.addrB)):
                ip("-n", self.middle, "link", "add", end, "type", "veth", "peer", "name", INTERFACE, "netns", name)
                ip("-n", self.middle, "link", "set", end, "mtu", str(self.mtu))
                ip("-n", name, "link", "set", INTERFACE, "mtu", str(self.mtu))
                ip("-n", name, "addr", "add", f"{addr}/24", "brd", "+", "dev", INTERFACE)
                self._python(name, "--no-offload", INTERFACE).communicate()
                ip("-n", name, "link", "set", INTERFACE, "up")
                ip("-n", self.middle, "link", "set", end, "up")
            if self.nat:
                self._neighbours()
            self._forwarder = self._python(self.middle, *self.faults, *self._rules())
            if self._forwarder.stdout.readline() != "ready\n":
                raise RuntimeError("the process between the namespaces did not start")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait()
        if self._forwarder:
            self._forwarder.stdin.close()  # it ends when its stdin ends, also if this process is killed
            self._forwarder.wait(10)
            self._forwarder.stdout.close()
        for name in self._made:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
        self._made.clear()

    def address(self, end):
        return self.addrA if end == self.a else self.addrB

    def _rules(self):
        for outward, inward, first in ((self.natB, self.natA, ""), (self.movedB, self.movedA, self.moved_first)):
            if self.nat:
                yield f"--nat={self.addrA},{outward},{inward},{self.addrB},{first}"

    def _neighbours(self):
        """The addresses of the translator belong to no host, so nobody answers ARP for them. This adds entries that
        lead to the other end."""
        for name, other, addresses in ((self.a, self.b, (self.natB, self.movedB)),
                                       (self.b, self.a, (self.natA, self.movedA))):
            mac = json.loads(ip("-n", other, "-j", "link", "show", INTERFACE))[0]["address"]
            for address in addresses:
                ip("-n", name, "neigh", "add", address, "lladdr", mac, "dev", INTERFACE, "nud", "permanent")

    def _python(self, name, *args):
        return subprocess.Popen(in_namespace(name, [sys.executable, "-m", __spec__.name, *args]), text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run_in(self, name, argv, **popen):
        """Starts a program at one end (link.a, link.b). The Popen's pid is that of the program."""
        self._started.append(subprocess.Popen(in_namespace(name, argv), **popen))
        return self._started[-1]

    def counts(self):
        """Frames forwarded, dropped, duplicated and reordered until now, in both directions."""
        self._forwarder.stdin.write("counts\n")
        self._forwarder.stdin.flush()
        return json.loads(self._forwarder.stdout.readline())


# --- the program between both ends ------------------------------------------------------------------------------------

ETH_P_ALL, ETH_P_IP = 3, 0x0800
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
SO_RCVBUFFORCE = 33
SIOCETHTOOL = 0x8946
ETHTOOL_OFF = (0x17, 0x19, 0x1f, 0x24, 0x2c)  # linux/ethtool.h: STXCSUM, SSG, STSO, SGSO, SGRO


def no_offload(interface):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for command in ETHTOOL_OFF:
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            try:
                fcntl.ioctl(s, SIOCETHTOOL, struct.pack("16sP16x", interface.encode(), ctypes.addressof(value)))
            except OSError as e:
                if e.errno != errno.EOPNOTSUPP:
                    raise


def packet_socket(interface):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20)  # a small buffer would lose frames
    s.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    s.bind((interface, ETH_P_ALL))
    s.setblocking(False)
    return s


class Direction:
    def __init__(self, source, sink, faults, seed, counts, translations):
        self.source, self.sink, self.faults, self.counts = source, sink, faults, counts
        self.translations = translations
        self.random = random.Random(seed)
        self.held = collections.deque()  # [frames that may still overtake, latest time, frame]

    def send(self, frame):
        try:
            self.sink.send(frame)
            self.counts["forwarded"] += 1
        except OSError as e:
            if e.errno not in (errno.ENOBUFS, errno.EAGAIN, errno.ENETDOWN):
                raise
            self.counts["dropped"] += 1

    def take(self, frame):
        if struct.unpack_from("!H", frame, 12)[0] != ETH_P_IP:
            self.send(frame)
            return
        for translate in self.translations:
            frame = translate(frame)
        lost, twice, late = (self.random.random() < p for p in self.faults)
        if lost:
            self.counts["dropped"] += 1
        elif late:
            self.counts["reordered"] += 1
            self.held.append([self.random.randint(1, OVERTAKEN), time.monotonic() + HELD, frame])
            return
        else:
            self.send(frame)
            if twice:
                self.counts["duplicated"] += 1
                self.send(frame)
        for entry in self.held:
            entry[0] -= 1

    def release(self):
        """Sends the frames that have waited long enough. Returns the seconds until the next one is due."""
        now = time.monotonic()
        for _ in range(len(self.held)):
            entry = self.held.popleft()
            if entry[0] <= 0 or entry[1] <= now:
                self.send(entry[2])
            else:
                self.held.append(entry)
        return min((entry[1] - now for entry in self.held), default=None)

    def read(self):
        try:
            for _ in range(64):  # then the other direction, too
                self.take(self.source.recv(65600))
                self.release()
        except BlockingIOError:
            pass


def forward(args):
    a, b = packet_socket("linkA"), packet_socket("linkB")
    counts = {"forwarded": 0, "dropped": 0, "duplicated": 0, "reordered": 0}
    faults = (args.loss, args.dup, args.reorder)
    ways = [Direction(a, b, faults, 2 * args.seed, counts, [t.out for t in args.nat]),
            Direction(b, a, faults, 2 * args.seed + 1, counts, [t.back for t in args.nat])]
    print("ready", flush=True)
    while True:
        waits = [w for w in (way.release() for way in ways) if w is not None]
        ready, _, _ = select.select([a, b, sys.stdin], [], [], max(0, min(waits)) if waits else None)
        for way in ways:
            if way.source in ready:
                way.read()
        if sys.stdin in ready:
            if not sys.stdin.readline():
                return
            print(json.dumps({**counts, "translated": sum(t.translated for t in args.nat)}), flush=True)


def rule(text):
    *addresses, first = text.split(",")
    return Translator(*addresses, int(first) if first else None)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--no-offload", metavar="INTERFACE")
    for fault in ("loss", "reorder", "dup"):
        arguments.add_argument(f"--{fault}", type=float, default=0)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--nat", type=rule, action="append", default=[])
    args = arguments.parse_args()
    if args.no_offload:
        no_offload(args.no_offload)
    else:
        forward(args)


if __name__ == "__main__":
    main()
