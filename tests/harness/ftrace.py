# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's own times of events, by its tracer: an instance of tracefs that only this test uses."""
import os
import struct
import time
import uuid
from pathlib import Path

TRACEFS = Path("/sys/kernel/tracing")
PAGE, DELTA_BITS = 4096, 27
DATA_MOST, PADDING, EXTEND, STAMP = 28, 29, 30, 31  # the kinds of entries of a page: include/linux/ring_buffer.h


def page_times(page):
    """The times (ns) of the events of one page of the ring buffer."""
    now, commit = struct.unpack_from("<QQ", page)
    at, end = 16, 16 + (commit & 0xFFFFF)
    while at < end:
        head, more = struct.unpack_from("<II", page, at) if at + 8 <= len(page) else (struct.unpack_from("<I", page, at)[0], 0)
        kind, delta = head & 31, head >> 5
        if kind == PADDING and not delta:
            return
        if kind == STAMP:
            now = (more << DELTA_BITS) + delta + (now >> 59 << 59)
        else:
            now += delta + (more << DELTA_BITS if kind == EXTEND else 0)
        if kind <= DATA_MOST:
            yield now
        at += 4 + (8 - 4 if kind in (EXTEND, STAMP) else more if kind in (0, PADDING) else 4 * kind)


class Ftrace:
    """Notes when an event happens, by the wall clock of the kernel: with "tai", less what TAI is before UTC."""

    def __init__(self, event, condition):
        self.dir = TRACEFS / "instances" / f"ebpfmon{uuid.uuid4().hex[:8]}"
        self.event, self.condition = event, condition

    def __enter__(self):
        self.dir.mkdir()
        try:
            self.write("trace_clock", "tai")
            self.write(f"events/{self.event}/filter", self.condition)
            self.write(f"events/{self.event}/enable", "1")
        except OSError:
            self.dir.rmdir()
            raise
        return self

    def __exit__(self, *_):
        self.write("tracing_on", "0")
        self.write(f"events/{self.event}/enable", "0")
        self.dir.rmdir()

    def write(self, name, text):
        (self.dir / name).write_text(text)

    def times(self):
        """All times (ns of Unix), sorted. They are read once."""
        self.write("tracing_on", "0")
        ahead = round((time.clock_gettime_ns(time.CLOCK_TAI) - time.time_ns()) / 1e9) * 10**9
        found = []
        for cpu in sorted((self.dir / "per_cpu").iterdir()):
            with open(os.open(cpu / "trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as raw:
                while page := read(raw):
                    found += page_times(page)
        return sorted(t - ahead for t in found)


def read(raw):
    try:
        return raw.read(PAGE)
    except BlockingIOError:
        return None
