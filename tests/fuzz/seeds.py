#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes corpus/ca from the recorded circuit of tests/unit/caRecorded.h. feed.h describes the format."""
import pathlib
import re
import struct

here = pathlib.Path(__file__).parent
out = here / "corpus" / "ca"


def recorded():
    text = (here / "../unit/caRecorded.h").read_text()
    data = [int(n) for n in re.findall(r"\d+", text[text.index("{") + 1:])]
    at = 0
    while at < len(data):
        yield data[at], bytes(data[at + 2:at + 2 + data[at + 1]])
        at += 2 + data[at + 1]


def record(what, data):
    return struct.pack(">BH", what, len(data)) + data


def header(cmd, size, kind, count, cid, extra):
    return struct.pack(">HHHHII", cmd, size, kind, count, cid, extra)


talk = list(recorded())
files = {
    "recorded": b"".join(record(d, p) for d, p in talk),
    "middle": record(24, b"\x07") + b"".join(record(d, p) for d, p in talk[len(talk) // 2:]),
    "bytes": b"".join(record(d, bytes([b])) for d, p in talk[:8] for b in p),
    "turned": b"".join(record(8 | d, struct.pack(">h", len(p) - len(p) // 2) + p[len(p) // 2:])
                       + record(d, p[:len(p) // 2]) + record(d, p[len(p) // 2:]) for d, p in talk),
    "holes": b"".join(record(d, p) + record(24 | d, bytes([2 | n & 0xf8])) + record(24, b"\x03")
                      for n, (d, p) in enumerate(talk)),
    "snapped": b"".join(record(24 | d, b"\x01" + p) for d, p in talk),
    "ended": b"".join(record(d, p) for d, p in talk[:6]) + record(16, b"\x11") + record(17, b"\x11"),
    "extended": record(0, header(0, 0, 0, 13, 0, 0)
                       + header(4, 0xffff, 6, 0, 1, 2) + struct.pack(">II", 1600, 200) + bytes(1600)),
    "udp": record(24, b"\x00" + header(0, 0, 1, 13, 1, 0) + header(6, 8, 5, 13, 1, 1) + b"DEMO:A\0\0")
           + record(25, b"\x00" + header(6, 8, 5064, 0, 0xffffffff, 1) + b"\0\x0d\0\0\0\0\0\0")
           + record(25, b"\x00" + header(13, 0, 13, 5064, 1, 0)),
}
types = b""
for kind in range(39):
    types += header(19, 48 if kind in (0, 7, 14, 21, 28, 37, 38) else 96, kind, 1, 1, kind) + bytes(
        48 if kind in (0, 7, 14, 21, 28, 37, 38) else 96)
files["types"] = record(0, header(0, 0, 0, 13, 0, 0)) + record(0, types[:3900])
out.mkdir(parents=True, exist_ok=True)
for name, data in files.items():
    (out / name).write_bytes(data)
