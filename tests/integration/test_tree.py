# SPDX-License-Identifier: BSD-3-Clause
"""CHAIN_LOG shows which record made which record process. The tests compare this with the known trees of their
databases."""
import random
import re

import pytest
from tests.harness import ca, db
from tests.harness.wait import until

SIZE, TREES = 60, 12
LATE = 8  # EBPFMON_ASYNC: the largest number of asynchronous records of one chain that the monitor follows
LINE = re.compile(r"^ +[-0-9.]+ ms ( +)(?:(\w+|\?) > )?(\S+) \((\w+)\)( = | begun)")


# For each kind: record type, fields, and the links by which it makes other records process. A record with a delay
# completes later, in another thread, and then processes its forward link.
KINDS = {
    "calc": ("calc", {"CALC": "VAL+1"}, ["INPA", "INPB", "FLNK"]),
    "calcout": ("calcout", {"CALC": "VAL+1"}, ["INPA", "OUT", "FLNK"]),
    "sel": ("sel", {"SELM": "High Signal"}, ["INPA", "INPB", "FLNK"]),
    "fanout": ("fanout", {}, ["LNK1", "LNK2", "FLNK"]),
    "dfanout": ("dfanout", {}, ["OUTA", "OUTB", "FLNK"]),
    "delayed": ("calcout", {"CALC": "VAL+1", "ODLY": "0.02"}, ["INPA", "OUT", "FLNK"]),
    "sequence": ("seq", {"DLY1": "0.01", "DLY2": "0.01", "DOL1": "1", "DOL2": "1"}, ["LNK1", "LNK2", "FLNK"]),
}


def tree(number):
    """The records, and for each one but the root: (record that makes it process, link)."""
    rng = random.Random(number)
    root = f"R{number}:0"
    kind, fields, parent = {root: "fanout"}, {root: {}}, {}
    free = [(root, f"LNK{i}") for i in range(1, 9)]
    late = 0
    for i in range(1, SIZE):
        name = f"R{number}:{i}"
        above, link = free.pop(rng.randrange(len(free)))
        parent[name] = (above, link)
        made = rng.choice(["calc", "calc", "calcout", "sel", "sel", "fanout", "fanout", "dfanout", "dfanout"] +
                          (["delayed", "sequence"] if number >= TREES / 2 and late < LATE else []))
        late += made in ("delayed", "sequence")
        kind[name], values, links = KINDS[made]
        fields[name] = dict(values)
        target = "{P}" + name
        fields[above][link] = target + " PP" if link.startswith("INP") else \
            target + ".PROC" if link.startswith("OUT") or kind[above] == "seq" and link != "FLNK" else target
        free += [(name, l) for l in links]
    return kind, fields, parent


@pytest.fixture(scope="module")
def trees():
    return [tree(n) for n in range(TREES)]


@pytest.fixture(scope="module")
def ioc(module_ioc, trees):
    made = module_ioc("")
    text = db.READY
    for kind, fields, _ in trees:
        for name, values in fields.items():
            text += db.record(kind[name], name, **{f: v.replace("{P}", made.prefix) for f, v in values.items()})
    (made.tmp / f"{made.name}.db").write_text(text)
    return made.start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc):
    return module_monitor().start().at_level("trace", ioc)


def parents(text, prefix):
    """Name → (parent's name, link) of the newest chain of a text."""
    found, above = {}, []
    for line in text.splitlines()[1:]:
        m = LINE.match(line)
        if not m:
            break
        depth = (len(m[1]) - 1) // 2
        name = m[3].removeprefix(prefix)
        if m[2] == "async":  # use the line of its begin
            assert above[depth - 1] == name, line
        elif depth:
            assert name not in found, line
            found[name] = (above[depth - 1] if m[2] != "?" else None, m[2])
        above[depth:] = [name]
    return found


def run(monitor, root):
    """Processes the root. Returns the text of its chain."""
    before = monitor.get("CHAIN_LOG_CNT")
    ca.put(root + ".PROC", 1)

    def newest():
        text = monitor.lines("CHAIN_LOG")
        return text if monitor.get("CHAIN_LOG_CNT") > before and f": {root} " in text.partition("\n")[0] else None

    return until(newest, 10, lambda: f"the chain of {root}:\n{monitor.lines('CHAIN_LOG')[:500]}")


@pytest.mark.parametrize("number", range(TREES))
def test_tree(ioc, monitor, trees, number):
    root = f"{ioc.prefix}R{number}:0"
    for _ in range(3):
        ca.put(root + ".PROC", 1)
        text = run(monitor, root)
        assert parents(text, ioc.prefix) == trees[number][2], text


@pytest.mark.parametrize("number", range(TREES // 2))
def test_as_tpro_says(ioc, monitor, trees, number):
    """TPRO of Base prints each record for which dbProcess is called: the records of the tree, parents first."""
    root = f"{ioc.prefix}R{number}:0"
    ca.put(root + ".TPRO", 1)
    ioc.command("echo")  # prints the buffered text
    said = len(ioc.process.lines)
    text = run(monitor, root)
    ca.put(root + ".TPRO", 0)
    ioc.command("echo")
    printed = list(ioc.process.lines)[said:]
    assert [m[1] for l in printed if (m := re.search(r"dbProcess of '(\S+)'", l))] == \
        [LINE.match(l)[3] for l in text.splitlines()[1:SIZE + 1]]


def test_trace_at_the_shell(ioc, monitor, trees):
    """ebpfMonTrace prints the wanted number of chains that have this record, each with its root."""
    leaf = ioc.prefix + f"R0:{SIZE - 1}"
    monitor.process.command(f'ebpfMonTrace "{leaf}" 2')
    for _ in range(4):
        ca.put(f"{ioc.prefix}R0:0.PROC", 1)
        ca.put(f"{ioc.prefix}R1:0.PROC", 1)
    until(lambda: "ebpfMonTrace: done" in monitor.process.output(1000), 10, lambda: monitor.process.output(200))
    printed = monitor.process.output(1000).partition("ebpfMonTrace: done")[0]
    assert len(re.findall(rf"> {re.escape(leaf)} \(", printed)) == 2
    assert f": {ioc.prefix}R0:0 " in printed and f": {ioc.prefix}R1:0 " not in printed
    assert "no watched IOC has a record" in "".join(monitor.process.command('ebpfMonTrace "nosuch" 1'))
