# SPDX-License-Identifier: BSD-3-Clause
"""Reads the monitor's JSON log; tests compare it with what clients sent."""
import json
import math
import re
import struct

from . import paths
from .wait import until

SCHEMA = json.loads((paths.TOP / "documentation" / "use" / "putLog.schema.json").read_text())


class Number(str):
    """A JSON number with its digits as in the file."""


def check_line(value, schema=SCHEMA):
    """A line is as its published schema says, and has no other keys."""
    if "type" not in schema:
        assert value in schema.get("enum", [schema.get("const")]), (value, schema)
        return
    kind = {str: "string", bool: "boolean", list: "array", dict: "object", int: "integer"}.get(type(value), "number")
    if type(value) is Number and value.lstrip("-").isdigit():
        kind = "integer"
    assert kind in schema["type"] or (kind == "integer" and "number" in schema["type"]), (value, schema)
    assert re.search(schema.get("pattern", ""), str(value)), (value, schema)
    if kind == "object":
        assert all(key in value for key in schema["required"]), (value, schema["required"])
        for key, part in value.items():
            assert key in schema["properties"], f"{key} is not in putLog.schema.json: {value}"
            check_line(part, schema["properties"][key])
    for part in value if kind == "array" else ():
        check_line(part, schema["items"])


class PutLog:
    def __init__(self, path):
        self.path = path
        self.expected = 0  # puts that were compared
        self.inside = 0    # … and published before their packets came
        self._read = []    # what was read so far
        self._at = 0       # … bytes of the file

    def command(self):
        """The command for the monitor's start-up script."""
        return f'ebpfMonJsonLog "{self.path}" 0 0 1 all'

    def all(self):
        """All puts. Reads only the lines that are new: tests ask often, and a log may have thousands of them."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._at)
                new = file.read()
        except FileNotFoundError:
            return []
        new = new[:new.rfind(b"\n") + 1]  # the last line may not be whole yet
        self._at += len(new)
        lines = [json.loads(l, parse_int=Number, parse_float=Number) for l in new.decode().split("\n")[:-1]]
        for line in lines:
            check_line(line)
        self._read += lines
        return list(self._read)

    def of(self, prefix):
        return [o for o in self.all() if o["pv"].startswith(prefix)]

    def next(self, number, prefix, mark, seconds=10):
        """The puts to PVs with this prefix, without the first "mark" ones. Waits until there are so many."""
        self.expected += number
        until(lambda: len(self.of(prefix)) >= mark + number, seconds,
              lambda: f"{number} puts to {prefix}: " + "\n".join(map(str, self.of(prefix)[mark:])))
        lines = self.of(prefix)[mark:]
        assert len(lines) == number, "more than were sent: " + "\n".join(map(str, lines))
        return lines


def same(shown, sent, packing="d"):
    """True if this text or number is exactly that value."""
    if isinstance(sent, str):
        return type(shown) is str and shown == sent
    if isinstance(sent, float) and not math.isfinite(sent):
        return shown in (("Nan", "NaN", "nan") if math.isnan(sent) else
                         ("Infinity", "inf") if sent > 0 else ("-Infinity", "-inf"))
    try:
        if isinstance(sent, float):
            return struct.pack(packing, float(shown)) == struct.pack(packing, sent)
        return int(shown) == sent
    except ValueError:  # a text
        return False


def same_array(shown, sent, packing="d"):
    """The same for an array, "[3] 1 2 3": the length and the first elements (eight, and not more than 256 bytes)."""
    count, *first = shown.replace('"', "").split(" ")
    more = first[-1:] == ["..."]
    first = first[:-1] if more else first
    enough = min(len(sent), 6 if isinstance(sent[0], str) else 8)
    return count == f"[{len(sent)}]" and more == (len(sent) > len(first)) and len(first) >= enough and \
        all(same(a, b, packing) for a, b in zip(first, sent))
