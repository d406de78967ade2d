# SPDX-License-Identifier: BSD-3-Clause
"""CHAIN_SLOW tells who made whom process: trees of databases whose structure is known."""
import random
import re

import pytest
from harness import ca, db
from harness.wait import until

SIZE, TREES = 60, 6
LINE = re.compile(r"^ +[-0-9.]+ us ( +)(?:(\w+|\?) > )?(\S+) \((\w+)\) = ")


def tree(number):
    """Records, and for each but the root: (the record that makes it process, the link that does)."""
    rng = random.Random(number)
    fields = {f"R{number}:0": {}}
    kind = {f"R{number}:0": "fanout"}
    parent = {}
    free = [(f"R{number}:0", f"LNK{i}") for i in range(1, 9)]
    for i in range(1, SIZE):
        name = f"R{number}:{i}"
        above, link = free.pop(rng.randrange(len(free)))
        parent[name] = (above, link)
        kind[name] = rng.choice(["calc", "calcout", "fanout", "calc"])
        fields[name] = {} if kind[name] == "fanout" else {"CALC": "VAL+1"}
        target = "{P}" + name
        fields[above][link] = target if link == "FLNK" or link.startswith("LNK") else \
            target + " PP" if link.startswith("INP") else target + ".PROC"
        if kind[name] == "fanout":
            free += [(name, "LNK1"), (name, "LNK2"), (name, "FLNK")]
        else:
            free += [(name, "INPA"), (name, "INPB"), (name, "FLNK")] + \
                ([(name, "OUT")] if kind[name] == "calcout" else [])
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
    m = module_monitor().start()
    m.wait_ioc(ioc)
    m.set_filter(LEVEL="trace")
    until(lambda: m.iocs()[ioc.pid][3] == "trace", 20, "level trace")
    return m


def told(text, prefix):
    """Name → (parent's name, link) of the newest chain of a text."""
    found, above = {}, []
    for line in text.splitlines()[1:]:
        m = LINE.match(line)
        if not m:
            break
        depth = (len(m[1]) - 1) // 2
        name = m[3].removeprefix(prefix)
        above[depth:] = [name]
        if depth:
            found[name] = (above[depth - 1] if m[2] != "?" else None, m[2])
    return found


@pytest.mark.parametrize("number", range(TREES))
def test_tree(ioc, monitor, trees, number):
    root = f"{ioc.prefix}R{number}:0"
    for _ in range(3):
        ca.put(root + ".PROC", 1)
        before = monitor.get("CHAIN_SLOW_CNT")
        ca.put(root + ".PROC", 1)

        def newest():
            text = monitor.lines("CHAIN_SLOW")
            return text if monitor.get("CHAIN_SLOW_CNT") > before and f": {root} " in text.partition("\n")[0] else None

        text = until(newest, 10, lambda: f"the chain of {root}:\n{monitor.lines('CHAIN_SLOW')[:500]}")
        assert told(text, ioc.prefix) == trees[number][2], text


def test_trace_at_the_shell(ioc, monitor, trees):
    """The chains of one record deep in a tree, as many as were asked for, each with its root."""
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
