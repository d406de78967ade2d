# SPDX-License-Identifier: BSD-3-Clause
"""Trials of passes: an IOC at level counts, whose records count themselves."""
import pytest
from tests.harness import ca, db, paths
from tests.harness.wait import settled, until

FAST = [f"{s} second" for s in (".01", ".02", ".05")]


def cells(monitor, ioc):
    """The row of this IOC in the output of ebpfMonIocs."""
    for line in monitor.command("ebpfMonIocs"):
        words = line.split()
        if words and words[0] == ioc.name:
            return words
    raise AssertionError(f"{ioc.name} is not in the table of ebpfMonIocs")


def row(monitor, ioc):
    """The way in which its chains are seen, and traps per second."""
    words = cells(monitor, ioc)
    return words[5], int(words[6])


def cold(monitor, ioc):
    """How many traps per second found the CPU cold."""
    return float(cells(monitor, ioc)[7])


class Trial:
    """An IOC at level counts, and its records that count themselves."""

    def __init__(self, new_ioc, monitor, text, way="passes", **kind):
        self.ioc = new_ioc(db.READY + text, **kind).start()
        self.monitor = monitor
        monitor.set_filter(IOC=self.ioc.name, LEVEL="counts")
        monitor.wait_ioc(self.ioc, level="counts")
        self.names = [line.split("$(P)")[1].split('"')[0] for line in text.splitlines() if line.startswith("record(calc")]
        self.wait_way(way)
        self.before = None

    def wait_way(self, way):
        until(lambda: row(self.monitor, self.ioc)[0] == way, 60, lambda: f"{way}: {row(self.monitor, self.ioc)}")

    def truth(self):
        got = ca.get_integers([self.ioc.prefix + n for n in self.names])
        return {n: got[self.ioc.prefix + n] for n in self.names}

    def counts(self):
        records = self.monitor.records(self.ioc.name)
        return {n: records[self.ioc.prefix + n] for n in self.names}

    def count_of(self, name):
        """The settled count of a record that does not count itself."""
        return settled(lambda: self.monitor.records(self.ioc.name)[self.ioc.prefix + name].count, 60, quiet=2)

    def scan(self):
        self.ioc.command("iocRun")

    def stop(self):
        """Stops the scans, without a put to SCAN, which would mark the counts. Returns the truth and the counts."""
        return stand_still(self)

    def compare(self, before, after, marks=()):
        """One text for each count that is wrong, or that is marked but not in "marks"."""
        wrong = []
        for n in self.names:
            true, got = after[0][n] - before[0][n], after[1][n].count - before[1][n].count
            marked = "atleast" in after[1][n].flags
            if got > true or (got < true and not marked) or (marked and marks != "all" and n not in marks):
                wrong.append(f"{n}: {got}{', at least' if marked else ''}; truly {true}")
        return wrong


def truth_by_shell(trial):
    """The values of the records, by iocsh: the CA server pauses, too."""
    lines = [line.split(", ") for kind in ("calc", "calcout") for line in trial.ioc.command(f"dbl {kind} VAL") if ", " in line]
    return {name.removeprefix(trial.ioc.prefix): int(value.strip("\"")) for name, value in lines}


def stand_still(trial):
    trial.ioc.command("iocPause")
    return settled(lambda: (truth_by_shell(trial), trial.counts()), 60, quiet=2.0)


def begin_still(new_ioc, monitor, fast, text):
    """A trial, and its counts while it stands still. The scans go on then."""
    t = Trial(new_ioc, monitor, text, program=fast)
    before = stand_still(t)
    t.ioc.command("iocRun")
    return t, before


def let_scan(trial, scans, what=lambda: None):
    start = trial.ioc.get("C0_0")

    def is_over():
        what()
        return trial.ioc.get("C0_0") > start + scans

    until(is_over, 120, "scans")


@pytest.fixture
def fast(tmp_path):
    """A softIoc that scans at up to 100 Hz (FAST), so passes often run at the same time as others."""
    dbd = (paths.BASE / "dbd" / "softIoc.dbd").read_text()
    first = '    choice(menuScan10_second, "10 second")\n'
    assert first in dbd
    (tmp_path / "fast.dbd").write_text(dbd.replace(first, first + "".join(
        f'    choice(menuScanFast{i}, "{period}")\n' for i, period in enumerate(FAST))))
    program = tmp_path / "fastIoc"
    program.write_text(f'#!/bin/sh\nexec {paths.BASE_BIN / "softIoc"} -D {tmp_path / "fast.dbd"} "$@"\n')
    program.chmod(0o755)
    return program


def busy_database():
    """90 chains in three lists. Some are asynchronous; CP links, events and delays process others in the middle of chains."""
    text = "".join(db.chain(f"C{i}_", 1 + i % 4, SCAN=FAST[i % 3]) for i in range(60))
    for i in range(10):  # an asynchronous record in the chain, and one that it processes when it completes
        text += db.counter(f"D{i}", SCAN=FAST[1], FLNK=f"$(P)D{i}:OUT")
        text += db.out_counter(f"D{i}:OUT", ODLY="0.004", OUT=f"$(P)D{i}:TO.PROC PP", FLNK=f"$(P)D{i}:END")
        text += db.counter(f"D{i}:TO") + db.counter(f"D{i}:END")
    for i in range(20):  # a CP link in a chain: this chain and one of another list process the record
        text += db.counter(f"P{i}", SCAN=FAST[i % 3], FLNK=f"$(P)P{i}:M")
        text += db.counter(f"P{i}:M", SDIS=f"$(P)C{i}_0.DISA CP", DISV="7", FLNK=f"$(P)P{i}:E") + db.counter(f"P{i}:E")
        text += db.counter(f"K{i}", INPB=f"$(P)C{3 + i}_0 CP", FLNK=f"$(P)K{i}:E") + db.counter(f"K{i}:E", FLNK=f"$(P)P{i}:M2" if i % 2 else "")
        text += db.counter(f"Q{i}", SCAN=FAST[(i + 1) % 3], FLNK=f"$(P)P{i}:M2") + db.counter(f"P{i}:M2", FLNK=f"$(P)P{i}:E2")
        text += db.counter(f"P{i}:E2")
    text += "".join(db.chain(f"V{i}_", 2, SCAN="Event", EVNT="go") for i in range(10))
    text += db.record("event", "GO", SCAN=FAST[0], VAL="go")
    return text


def roots_of(text):
    return {line.split("$(P)")[1].split('"')[0]: line.split('field(SCAN, "')[1].split('"')[0]
            for line in text.splitlines() if "field(SCAN" in line}
