# SPDX-License-Identifier: BSD-3-Clause
"""Puts of each type, made in each way, to servers of each kind; and what a log must say about them. The servers are
those of tests/programs/peer_ioc.py, and IOCs of Base with RECORDS, which have the same names."""
import collections

from . import db, rawca
from .caclients import CHAR, DOUBLE, ENUM, FLOAT, LONG, NAMES, SHORT, STRING, on_the_wire
from .putlog import same, same_array

STATES = ["Idle", "Moving", "Stopped"]
NELM = 100000
OF_BASE = ("softIoc", "softIocPVA", "pvxs", "softioc")  # kinds of servers in which the monitor sees puts in the IOC
RECORDS = db.READY + db.record("stringout", "STRING") + db.record("longout", "LONG") + db.record("ao", "DOUBLE") + \
    db.record("mbbo", "ENUM", **dict(zip(("ZRST", "ONST", "TWST"), STATES))) + \
    "".join(db.record("waveform", t, FTVL=t.replace("CHAR", "UCHAR"), NELM=1) for t in ("SHORT", "FLOAT", "CHAR")) + \
    "".join(db.record("waveform", "A" + t, FTVL=t.replace("CHAR", "UCHAR"), NELM=NELM) for t in NAMES) + \
    db.record("ao", "DISABLED", DISP=1) + db.record("ao", "RO", ASG="RO")
ACF = """ASG(DEFAULT) { RULE(1, WRITE) }
ASG(RO) { RULE(1, READ) }
"""
REFUSING = {"caproto": ("RO", "BAD"), "pcaspy": ("RO",), "p4p": ("BAD",), "softioc": ()}  # others: RO, DISABLED

Put = collections.namedtuple("Put", "record dbr values notify")


def missing(kind, base, many):
    """The types that this server does not have."""
    return (kind == "pcaspy" and (base == CHAR and not many or base == STRING and many)) or \
        (kind == "softioc" and base == STRING and many)


def by_ca(kind, n):
    """Puts by CA, as write and as write-notify: each type as a scalar and as an array, values of another type, and
    refused puts. Another "n" gives other values."""
    puts = []
    for notify in (False, True):
        i = 2 * n + notify
        scalars = {STRING: f"text {i}", SHORT: i, FLOAT: i + 0.5, ENUM: i % 3, CHAR: i % 256, LONG: i, DOUBLE: i / 7}
        arrays = {STRING: [f"a{i}", "", "b"], SHORT: [i, -i], FLOAT: [i + 0.25, -0.0],
                  CHAR: [1, i % 256, 255],  # a control character: no text
                  LONG: [i, 2147483647, -i], DOUBLE: [i / 7, float("inf"), -0.0]}
        puts += [Put(NAMES[t], t, [v], notify) for t, v in scalars.items() if not missing(kind, t, False)]
        puts += [Put("A" + NAMES[t], t, v, notify) for t, v in arrays.items() if not missing(kind, t, True)]
        puts += [Put("DOUBLE", STRING, [f"{i}.25"], notify), Put("LONG", SHORT, [i], notify)]
        puts += [Put(r, DOUBLE, [i + 0.5], notify) for r in REFUSING.get(kind, ("RO", "DISABLED"))]
        if kind in OF_BASE:
            puts.append(Put("DOUBLE", STRING, [f"no number {i}"], notify))
    return puts


def by_pva(kind, n):
    """Puts by PVA, one to each PV."""
    puts = [("DOUBLE", n / 7), ("LONG", n), ("STRING", f"text {n}"), ("ENUM", n % 3), ("ADOUBLE", [n / 7, -0.0, 1.5]),
            ("ALONG", [n, -n])]
    puts += [(r, n + 0.5) for r in REFUSING.get(kind, ("RO", "DISABLED"))]
    if kind == "p4p":
        puts += [("INT64", 2**62 + n), ("FLOAT", n + 0.5), ("SHORT", n), ("BYTE", n), ("ASTRING", [f"a{n}", "b c"])]
    return [Put(r, None, v if isinstance(v, list) else [v], True) for r, v in puts]


def _is_value(kind, put, line, lossy):
    shown, values = line["value"], put.values
    if lossy and shown == "?" and line["seen"] == "wire":
        return True  # its type was described in a packet that is lost
    packing = "f" if put.dbr == FLOAT or put.record == "FLOAT" else "d"
    if len(values) > 1 and isinstance(values[0], str) and put.dbr is None:
        return shown == f"[{len(values)}] " + " ".join(f'"{v}"' for v in values)
    if len(values) > 1:
        return same_array(shown, values, packing)
    if put.record == "ENUM":
        number = str(values[0])
        of_ioc = (STATES[values[0]], number) if lossy else (STATES[values[0]],)  # the texts are in the IOC, which may be gone
        return shown in (of_ioc if kind in OF_BASE else (number, f"{number} ({STATES[values[0]]})"))
    return same(shown, values[0], packing) or str(shown) == str(values[0])


def _results(kind, put, answer):
    if put.dbr is not None and not put.notify and kind not in OF_BASE:
        return ("sent",) if answer is None else ("sent", "failed", "denied")  # its error may come too late
    return ("failed", "denied") if answer else ("ok",)


def wrong_line(kind, put, answer, line, lossy=False):
    """What is wrong in the log line of this put; empty if it is right. "lossy": its result may not have been seen."""
    if line is None:
        return f"{put}, {answer}: not logged"
    if not _is_value(kind, put, line, lossy):
        return f"{put}: its value in {line}"
    if line["result"] not in _results(kind, put, answer) and not (lossy and line["result"] == "unknown"):
        return f"{put}, {answer}: its result in {line}"
    if put.dbr is not None and line["seen"] != "inside":
        right = rawca.fnv(on_the_wire(put.dbr, put.values, True))
        if line.get("hash", right if lossy else None) != right:  # there is none if bytes of the message were lost
            return f"{put}: its hash in {line}"
    return ""
