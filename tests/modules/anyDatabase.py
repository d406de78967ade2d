# SPDX-License-Identifier: BSD-3-Clause
"""Random databases with records of modules: what the monitor counts, and what a preloaded library counts in the IOC
(countCalls.c), while levels, budget and links change. No count is too high; one that is too low is marked. tools/modules.sh
builds the IOC and runs this; a text for each seed, and 1 as the result if a count was wrong.

Of each seed there are three IOCs: with records of all modules, with records of Base alone, and one whose passes can be watched; a
fourth one runs the softIoc $EBPFMON_MODULES_PROGRAM (tools/buildRelease.sh).
With an even seed nothing happens that may mark a count.
"""
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.modules import run  # it enters a network namespace before a client library is imported

from tests.harness import db, rawca
from tests.harness.ioc import Ioc
from tests.harness.monitor import Monitor
from tests.harness.passes import row

RECORDS = 60
SECONDS = float(os.environ.get("EBPFMON_MODULES_SECONDS", "20"))  # of each part of a trial
PROGRAM = os.environ.get("EBPFMON_MODULES_PROGRAM")  # a softIoc of another Base, which has a database of its own
SCANS = (".1 second", ".2 second", ".5 second")
BASE = {  # type: its output links, its links to forward records, what else it has
    "calc": ((), (), {"CALC": "VAL+1"}), "ao": (("OUT",), (), {}), "ai": ((), (), {}), "bo": (("OUT",), (), {}), "bi": ((), (), {}),
    "longout": (("OUT",), (), {}), "longin": ((), (), {}), "stringin": ((), (), {}), "int64out": (("OUT",), (), {}), "lsi": ((), (), {}),
    "calcout": (("OUT",), (), {"CALC": "VAL+1", "OOPT": "Every Time"}), "mbbo": (("OUT",), (), {"ZRVL": "0", "ONVL": "1"}),
    "mbbi": ((), (), {}), "mbboDirect": (("OUT",), (), {}), "sel": ((), (), {}), "compress": ((), (), {"ALG": "Average", "N": "3", "NSAM": "5"}),
    "histogram": ((), (), {"SDEL": "0.3", "NELM": "8", "ULIM": "9"}), "fanout": ((), ("LNK1", "LNK2"), {}), "event": ((), (), {"VAL": "e1"}),
    "dfanout": (("OUTA", "OUTB"), (), {}), "seq": (("LNK1", "LNK2"), (), {"DO1": "1", "DO2": "2", "DLY2": "0.02"}), "printf": (("OUT",), (), {"FMT": "x"}),
    "waveform": ((), (), {"FTVL": "DOUBLE", "NELM": "5"}), "aao": (("OUT",), (), {"FTVL": "DOUBLE", "NELM": "5"}), "state": ((), (), {}),
    "subArray": ((), (), {"FTVL": "DOUBLE", "NELM": "2", "MALM": "5"}), "permissive": ((), (), {}), "lso": (("OUT",), (), {"SIZV": "60"}),
    "int64in": ((), (), {}), "aai": ((), (), {"FTVL": "DOUBLE", "NELM": "5"}), "sub": ((), (), {}), "aSub": (("OUTA",), (), {"FTVA": "DOUBLE"}),
}
MORE = {  # of modules
    "swait": (("OUTN",), (), {"CALC": "VAL+1", "OOPT": "Every Time"}), "scalcout": (("OUT",), (), {"CALC": "VAL+1", "OOPT": "Every Time"}),
    "transform": (("OUTA", "OUTB"), (), {"CLCA": "A+1"}), "acalcout": (("OUT",), (), {"CALC": "AA+1", "NELM": "9", "OOPT": "Every Time"}),
    "sseq": (("LNK1", "LNK2"), (), {"DO1": "1", "DLY1": "0.02", "DO2": "1"}), "busy": (("OUT",), (), {}), "throttle": (("OUT",), (), {"DLY": "0.05"}),
    "timestamp": ((), (), {}), "epid": (("OUTL",), (), {"FBON": "1", "KP": "1", "STPL": "5"}), "scaler": ((), (), {"DTYP": "Soft Channel"}),
}


def interrupts(part, *more):
    """Records that the driver makes process, with links to others, and those that tell it to."""
    return run.control(part) + "".join(db.record("ai", f"{part}:AI{i}", DTYP="asynFloat64", INP="@asyn(APD,0,1)SCOPE_MEAN_VALUE", SCAN="I/O Intr",
                                                 FLNK=f"$(P){to}") for i, to in enumerate(more))


def write(r, types, part=""):
    """The text of a database. Links lead forward, so that no chain goes round and round. "part": with a driver."""
    text = db.READY + (interrupts(part, *(f"R{r.randrange(RECORDS)}" for _ in range(3))) if part else "")
    kinds = {**BASE, **(MORE if types == "all" else {})}
    for i in range(RECORDS):
        kind = r.choice(list(kinds)) if i < RECORDS - 10 else "calc"
        outs, forwards, fields = kinds[kind]
        fields = dict(fields)

        def target(i=i):
            return f"$(P)R{r.randrange(i + 1, RECORDS)}" if i + 1 < RECORDS else ""

        if i < RECORDS - 10:
            for link in outs:
                how = r.choice([".VAL PP", ".PROC", ".A PP", " CA", ".DESC NPP"]) if kind != "swait" else r.choice([".VAL", ".PROC", ".DISV"])
                fields.update({link: target() + how} if r.random() < 0.6 else {})
            for link in forwards:
                fields[link] = target()
        if r.random() < 0.5:
            fields["FLNK"] = target() + (".PROC CA" if i + 1 < RECORDS and r.random() < 0.1 else "")
        if kind in ("fanout", "dfanout", "seq"):
            fields.update({"SELM": r.choice(["All", "Specified", "Mask"]), "SELN": str(r.randrange(1, 4))})
        if kind in ("calc", "calcout", "sel", "scalcout") and i and r.random() < 0.5:
            fields["INPB"] = f"$(P)R{r.randrange(i)} {r.choice(['NPP', 'PP', 'CP', 'CPP', 'CA'])}"
        if kind in ("ai", "longin", "bi", "stringin", "int64in", "lsi") and i and r.random() < 0.5:
            fields["INP"] = f"$(P)R{r.randrange(i)} {r.choice(['NPP', 'PP', 'CP', 'CPP'])}"
        if kind == "calcout" and r.random() < 0.3:
            fields["ODLY"] = "0.03"
        fields.update({"TSE": "-2"} if r.random() < 0.04 else {})
        fields.update({"PINI": r.choice(["YES", "RUN", "RUNNING"])} if r.random() < 0.1 else {})
        fields.update({"SDIS": f"$(P)R{r.randrange(i)} {r.choice(['PP', 'NPP'])}", "DISV": "1"} if i and r.random() < 0.05 else {})
        if r.random() < 0.35 or i < 5:
            fields["SCAN"] = r.choice(SCANS)
        elif i >= RECORDS - 10 and r.random() < 0.2:  # nothing behind it sends the event again
            fields.update({"SCAN": "Event", "EVNT": "e1"})
        fields.update({"PHAS": str(r.randrange(3))} if r.random() < 0.2 else {})
        text += db.record(kind, f"R{i}", **fields)
    return text


def write_forest(r, calm):
    """The same, where each record belongs to one root of one scan list: so passes can be watched, if no record needs the trap, or the
    budget forbids it."""
    never = ("swait", "event", *(("busy", "throttle", "scaler", "histogram", "mbbo", "mbboDirect", "compress", "aao") if calm else ()))
    kinds = {kind: of for kind, of in {**BASE, **MORE}.items() if kind not in never}
    first = [kind for kind in MORE if kind in kinds]  # one of each is scanned: so it passes its trial, or fails
    made, free = [], []  # records with their fields; links that lead nowhere yet
    for i in range(RECORDS):
        kind = first[i] if i < len(first) else r.choice(list(kinds))
        outs, forwards, fields = kinds[kind]
        fields = dict(fields)
        if i < 12 or r.random() < 0.3:
            fields["SCAN"] = r.choice(SCANS)
        else:
            link, of = free.pop(r.randrange(len(free)))
            of[link] = f"$(P)R{i}" + (r.choice([".PROC", ".VAL PP"]) if link[:2] in ("OU", "LN") and link not in forwards else "")
        fields.update({"TSE": "-2"} if not calm and r.random() < 0.04 else {})
        made.append((kind, fields))
        free += [(link, fields) for link in (*outs, *forwards, "FLNK")]
    return db.READY + "".join(db.record(kind, f"R{i}", **fields) for i, (kind, fields) in enumerate(made)) + "".join(
        db.counter(f"LOAD{i}", SCAN=".1 second") for i in range(0 if calm else 600))


class Any(run.Watched):
    def drive(self, on):
        """Only one has a driver that interrupts."""
        if self.part == "ANYMORE":
            super().drive(on)

    def put(self, r, client, calm):
        """What an operator may do. The last three mark counts."""
        i = r.randrange(RECORDS - 1)
        pv = f"{self.ioc.prefix}R{i}"
        what = r.choices(["PROC", "DESC", "FLNK", "SCAN", "TSE"], [60, 30, *([0, 0, 0] if calm else [1, 1, 0.5])])[0]
        client.put(f"{pv}.{what}", rawca.STRING, [{"PROC": "1", "DESC": "x", "FLNK": f"{self.ioc.prefix}R{r.randrange(i + 1, RECORDS)}",
                                                    "SCAN": r.choice([*SCANS, "Passive"]), "TSE": r.choice(["0", "-2"])}[what]])


class Plain(Any):
    """A softIoc of another Base, without modules."""
    def __init__(self, cache, tmp, program, text):
        self.part, self.calls = "PLAIN", tmp / "PLAIN.calls"
        self.ioc = Ioc(tmp, db=text, program=program, environ={"LD_PRELOAD": str(cache / "countCalls.so"), "COUNT_CALLS": str(self.calls)})
        (tmp / "PLAIN.db").write_text(text)
        self.ioc.start()


def change(r, monitor, calm):
    """Another level, share of timed chains, or budget."""
    what = r.randrange(3 if calm else 4)
    if what < 2:
        level = r.choice(["counts", "chains", "trace", "counts", "chains", "trace" if calm else "puts"])
        monitor.set_filter(LEVEL=level)
        return level
    if what == 2:
        timed = r.choice([0, 5, 50, 100])
        monitor.set_filter(TIMED=timed)
        return f"timed {timed}"
    budget = r.choice([0, 1, 1, 0.2])  # at 1 the trap is forbidden where it costs more
    monitor.set_filter(BUDGET=budget)
    return f"budget {budget}"


def judge(watched, before, after):
    """Texts of counts that are wrong, or rise by too much; how many are low and marked, marked and exact, exact. What a record did while
    its IOC started may be counted later, when a program looks at it for the first time: then the whole count must not be too high."""
    wrong, late, low, needless, exact = [], [], 0, 0, 0
    for name, counted in after[1].items():
        true, got = after[0].get(name, 0) - before[0].get(name, 0), counted.count - before[1][name].count
        marked = "atleast" in counted.flags
        low += got < true and marked
        needless += got == true and marked
        exact += got == true and not marked
        if got > true or (got < true and not marked):
            isLate = got > true and counted.count <= after[0].get(name, 0) and before[1][name].count < before[0].get(name, 0)
            (late if isLate else wrong).append(f"{name.removeprefix(watched.ioc.prefix)} {got} of {true}{', marked' if marked else ''}; since the start "
                                               f"{counted.count} of {after[0].get(name, 0)} {' '.join(counted.flags)}")
    if late:
        print(f"  {watched.part}, counted later: {late}", flush=True)
    return wrong, low, needless, exact


def attempt(cache, folder, monitor, seed):
    """One seed. Nonzero: a count was wrong."""
    r, calm = random.Random(seed), int(seed) % 2 == 0
    tmp = Path(folder) / str(seed)
    tmp.mkdir()
    iocs = [Any(cache, tmp, name, text) for name, text in (
        ("ANYMORE", write(r, "all", "ANYMORE")), ("ANYBASE", write(r, "base")), ("FOREST", write_forest(r, calm)))]
    if PROGRAM:
        iocs.append(Plain(cache, tmp, PROGRAM, write(r, "base")))
    wrong, said = 0, []
    try:
        for w in iocs:
            monitor.wait_ioc(w.ioc)
        monitor.set_filter(LEVEL="chains", TIMED=100, BUDGET=0)
        for w in iocs:
            monitor.wait_ioc(w.ioc)
        clients = [rawca.RawCa(w.ioc.port, "user", "host") for w in iocs]  # an IOC that pauses takes no connection
        before = [w.rest(monitor) for w in iocs]
        for part in range(3):
            for w in iocs:
                w.go()
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                said.append(change(r, monitor, calm))
                for _ in range(r.randrange(1, 200)):
                    for w, client in zip(iocs, clients):
                        w.put(r, client, calm)
                    time.sleep(r.random() * 0.04)  # the pace of the load
            monitor.set_filter(LEVEL="chains", BUDGET=0)
            for w, b in zip(iocs, before):
                bad, *numbers = judge(w, b, w.rest(monitor))
                print(f"seed {seed} {w.part} {part}: low and marked {numbers[0]}, exact and marked {numbers[1]}, exact {numbers[2]}"
                      + f", now by {row(monitor, w.ioc)[0]}" + (f", WRONG {bad}" if bad else ""), flush=True)
                wrong += len(bad)
        print("\n".join(line for line in monitor.process.lines if "ebpfMon:" in line and any(w.ioc.name in line for w in iocs)), flush=True)
        if wrong:
            print("  ".join(said))
            print("\n".join((tmp / f"{w.part}.db").read_text() for w in iocs), file=sys.stderr)
        for client in clients:
            client.close()
    except OSError as e:
        print(f"seed {seed}: {e}: {[(w.part, w.ioc.running, w.ioc.process.output()[-800:]) for w in iocs]}", flush=True)
    finally:
        for w in iocs:
            w.ioc.discard()
    return wrong


def main(cache, seeds):
    with tempfile.TemporaryDirectory() as folder:
        monitor = Monitor(Path(folder), before=[]).start()
        try:
            return 1 if sum(attempt(cache, folder, monitor, seed) for seed in seeds) else 0
        finally:
            monitor.stop()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:] or [str(time.time_ns())]))
