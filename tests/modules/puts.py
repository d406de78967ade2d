# SPDX-License-Identifier: BSD-3-Clause
"""Puts of some clients, as caPutLog logs them in the IOC and as the monitor logs them in the same format: same puts, order,
values and users? tools/modules.sh builds the IOC and runs this.

caPutLog has one format for each IOC, so there are two IOCs. Both logs have all puts, without a filter for bursts. Their lines
are compared without the time. Records are scanned meanwhile, with passes that are timed all the time for the first half of the
puts, and in turns for the second one.
"""
import collections
import json
import random
import re
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.harness import netns, loopback

netns.enter_new()
loopback.use()  # before a client library is imported

from tests.harness import db, paths, rawca, tables  # noqa: E402
from tests.harness.ioc import Ioc  # noqa: E402
from tests.harness.monitor import Monitor  # noqa: E402
from tests.harness.wait import settled  # noqa: E402

A_SECOND = 50  # puts; at some hundreds caPutLog loses some
ACF = "ASG(DEFAULT) { RULE(1,READ) RULE(1,WRITE,TRAPWRITE) }\nASG(DENIED) { RULE(1,READ) }\n"
TEXT = "".join([
    db.READY, db.record("ao", "AO", DRVH="50", DRVL="-50", PREC="3"), db.record("longout", "LONG"), db.record("int64out", "INT64"),
    db.record("stringout", "TEXT"), db.record("mbbo", "MODE", ZRST="Off", ONST="Slow", TWST="Fast"), db.record("bo", "BO", ZNAM="no", ONAM="yes"),
    db.record("waveform", "WF", FTVL="DOUBLE", NELM="100"), db.record("lso", "LSO", SIZV="200"), db.record("ao", "NO", DISP="1"),
    db.record("ao", "DENIED", ASG="DENIED"), db.record("calcout", "LINKS", CALC="A", INPA="0", OUT="$(P)TO PP"), db.record("ao", "TO"),
    'record(ao, "$(P)NAME") { alias("$(P)ALIAS") }\n',
    *(db.counter(f"C{i}", SCAN=".1 second", FLNK=f"$(P)D{i}") + db.counter(f"D{i}") for i in range(20)),
])


def number(r):
    return round(r.uniform(-49, 49), 3)


KINDS = {  # name: PV, type, value
    "a number": ("AO", rawca.DOUBLE, number),
    "a number over the limit of the record": ("AO", rawca.DOUBLE, lambda r: 80 + r.randrange(20)),
    "the value that is there": ("NAME", rawca.DOUBLE, lambda r: 5),
    "a number as text": ("AO", rawca.STRING, lambda r: str(number(r))),
    "an integer": ("LONG", rawca.LONG, lambda r: r.randrange(-1000, 1000)),
    "a 64-bit integer": ("INT64", rawca.DOUBLE, lambda r: r.randrange(1 << 40)),
    "a text": ("TEXT", rawca.STRING, lambda r: r.choice(["", "a b", 'quo"te', "back\\slash", "umläut", "line\nfeed"]) + str(r.randrange(99))),
    "a state by its text": ("MODE", rawca.STRING, lambda r: r.choice(["Off", "Slow", "Fast"])),
    "a state by its number": ("BO", rawca.ENUM, lambda r: r.randrange(2)),
    "an array": ("WF", rawca.DOUBLE, lambda r: [number(r) for _ in range(r.randrange(2, 30))]),
    "a long text": ("LSO.VAL$", rawca.CHAR, lambda r: list(b"long " * r.randrange(1, 30) + b"\0")),
    "a description": ("AO.DESC", rawca.STRING, lambda r: f"text {r.randrange(99)}"),
    "a menu": ("LINKS.PRIO", rawca.STRING, lambda r: r.choice(["LOW", "HIGH"])),
    "an alias": ("ALIAS", rawca.DOUBLE, number),
    "a put that makes links write": ("LINKS.A", rawca.DOUBLE, number),
    "a put to a disabled record": ("NO", rawca.DOUBLE, number),
    "a put that cannot be converted": ("AO", rawca.STRING, lambda r: "no number"),
    "a put that is denied": ("DENIED", rawca.DOUBLE, number),
}


class Log:
    """A log server: lines that the IOC sends."""
    def __init__(self):
        self.lines, self.socket = [], socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with self.socket.accept()[0] as connection, connection.makefile(errors="replace", newline="\n") as file:
            for line in file:
                self.lines.append(line.rstrip("\n"))


def parse(line, is_json):
    """PV, user@host, new, old, and the rest."""
    if is_json:
        try:
            o = json.loads(line, parse_float=float, parse_int=float)  # 5 and 5.0 are one number
        except ValueError:
            print(f"no JSON: {line}")
            return line, "", "", "", ""
        rest = {k: v for k, v in o.items() if k not in ("date", "time", "host", "user", "pv", "new", "old")}
        return o["pv"], f'{o["user"]}@{o["host"]}', json.dumps(o["new"]), json.dumps(o.get("old")), json.dumps(rest)
    m = re.match(r"(\S+ \S+) (\S+) (\S+) (\S+) new=(.*?) old=(.*?)((?: (?:min|result|who_sure)=.*)?)$", line)
    return (m[4], f"{m[3]}@{m[2]}", m[5], m[6], m[7]) if m else (line, "", "", "", "")


def start_ioc(cache, tmp, kind, port):
    ioc = Ioc(tmp, kind="streamIoc", program=cache / "modulesIoc", wrap=())
    (tmp / "all.acf").write_text(ACF)
    (tmp / f"{kind}.db").write_text(TEXT)
    name = "caPutJsonLog" if kind == "json" else "caPutLog"
    path = f"{paths.BASE_BIN.parents[1] / 'dbd'}:{cache / 'caPutLog' / 'dbd'}"
    lines = [f'dbLoadDatabase("base.dbd", "{path}")', f'dbLoadDatabase("{name}.dbd", "{path}")', "registerAll",
             f'asSetFilename("{tmp / "all.acf"}")', f'dbLoadRecords("{tmp / kind}.db", "P={ioc.prefix}")', "iocInit",
             f'{name}Init("127.0.0.1:{port}", 2)']
    (tmp / f"{kind}.cmd").write_text("\n".join(lines) + "\n")
    ioc.files = [str(tmp / f"{kind}.cmd")]
    return ioc.start()


def put_all(ioc, seed, seconds, set_timed):
    """Makes puts for so long, one after the other. Returns their kinds in their order."""
    r, made, is_half = random.Random(seed), [], False
    clients = [rawca.RawCa(ioc.port, f"user{i}", f"host{i}") for i in range(4)]
    set_timed(100)
    begin = time.monotonic()
    while (passed := time.monotonic() - begin) < seconds:
        if passed > seconds / 2 and not is_half:
            is_half = True
            set_timed(20)
        kind = r.choice(list(KINDS))
        pv, dbr, value = KINDS[kind]
        v = value(r)
        clients[r.randrange(4)].put(ioc.prefix + pv, dbr, v if isinstance(v, list) else [v])
        made.append(kind)
        time.sleep(1 / A_SECOND)
    for c in clients:
        c.close()
    return made


def align(made, prefix, lines):
    """The lines of one log, each with the number of the put that it is of: they have the order of the puts."""
    found, at = {}, 0
    pvs = [prefix + KINDS[kind][0] for kind in made]
    for line in lines:
        k = at
        while k < len(pvs) and not is_of(line[0], pvs[k], prefix):
            k += 1
        if k < len(pvs):
            found[k] = line
            at = k + 1
        else:
            found.setdefault("other", []).append(line)
    return found


def is_of(shown, pv, prefix):
    return shown.removesuffix(".VAL") in (pv, pv.removesuffix(".VAL$"), pv.removesuffix("$")) or (pv.endswith("ALIAS") and shown == prefix + "NAME")


def compare(made, prefix, theirs, ours):
    """By kind: puts, in caPutLog, in ours, same, and how they differ."""
    rows = {kind: collections.Counter() for kind in KINDS}
    examples = {}
    a, b = align(made, prefix, theirs), align(made, prefix, ours)
    for k, kind in enumerate(made):
        row, x, y = rows[kind], a.get(k), b.get(k)
        row["puts"] += 1
        row["caPutLog"] += x is not None
        row["ebpfMon"] += y is not None
        if x is None or y is None:
            continue
        differ = [what for what, p, q in zip(("name", "user", "new", "old", "more"), x, y) if p != q]
        row["same"] += not differ
        for what in differ:
            row[what] += 1
            examples.setdefault((kind, what), (x, y))
    return rows, examples, a.get("other", []), b.get("other", [])


def describe(row):
    """The cell of one kind of puts and one format."""
    if row["caPutLog"] == row["ebpfMon"]:
        text = f'{row["ebpfMon"]:,} in both'
    else:
        text = ", ".join(f"{row[name]:,} in {name}" for name in ("caPutLog", "ebpfMon"))
    differ = [f"{what} in {row[what]:,}" for what in ("name", "user", "new", "old", "more") if row[what]]
    return text + (f'; other {", ".join(differ)}' if differ else "")


def main(cache, seconds):
    with tempfile.TemporaryDirectory() as folder:
        tmp = Path(folder)
        logs = {kind: Log() for kind in ("text", "json")}
        iocs = {kind: start_ioc(cache, tmp, kind, log.socket.getsockname()[1]) for kind, log in logs.items()}
        monitor = Monitor(tmp, before=[f'ebpfMonCaPutLog "{tmp / kind}.log" {kind} all' for kind in logs]).start()
        try:
            for ioc in iocs.values():
                monitor.wait_ioc(ioc)
            result = {}
            for kind, ioc in iocs.items():
                began = time.monotonic()
                made = put_all(ioc, kind, seconds / 2, lambda percent: monitor.set_filter(TIMED=percent))
                settled(lambda kind=kind: (len(logs[kind].lines), (tmp / f"{kind}.log").stat().st_size), 60, quiet=8)  # a burst lasts 5 s
                ours = [parse(line, kind == "json") for line in (tmp / f"{kind}.log").read_text(errors="replace").splitlines()]
                ours = [o for o in ours if o[0].startswith(ioc.prefix)]
                links = [o for o in ours if o[0] == ioc.prefix + "TO"]
                clients = [o for o in ours if o[0] != ioc.prefix + "TO"]
                theirs = [parse(line, kind == "json") for line in logs[kind].lines if ioc.prefix in line]
                rows, examples, *others = compare(made, ioc.prefix, theirs, clients)
                rows["what links write then"] = collections.Counter(puts=len(links), ebpfMon=len(links))
                rows["lines that are of none of these puts"] = collections.Counter(caPutLog=len(others[0]), ebpfMon=len(others[1]))
                print(f"{kind}: {len(made)} puts, {time.monotonic() - began:.0f} s")
                for name, row in rows.items():
                    result.setdefault(name, {})[kind] = describe(row)
                    print(f"  {name:40} {describe(row)}")
                for (name, what), (x, y) in examples.items():
                    print(f"  {name}, {what}: {x} / {y}")
        finally:
            monitor.stop()
            for ioc in iocs.values():
                ioc.discard()
    for row in result.values():
        row["date"] = tables.today()
    tables.record("putLogs", result)
    tables.write()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float((sys.argv[2:] or [200])[0]))
