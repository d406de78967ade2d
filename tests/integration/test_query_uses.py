# SPDX-License-Identifier: BSD-3-Clause
"""Queries with known results about what an IOC uses: memory by the function that asks for it, pages that a disk has to
provide, names that are looked up, and one instruction of a function."""
import os
import subprocess

import pytest
from tests.harness import paths
from tests.harness.queries import load, rows, start, stop
from tests.harness.wait import until

BOTH = ["MEMORY_BY_SITE", "HEAP_BY_SITE"]
SHIPPED = [*BOTH, "MAJOR_FAULTS", "ADDRESS_LOOKUPS"]
ROUNDS = 10
LARGE = 1048576 + 4096  # a block of 1 MiB with its head, in whole pages: malloc of the GNU C library
SMALL = 1008            # a block of 1000 bytes with its head
BURST = 20000           # blocks
GROWS = 200000          # a heap grows by 132 KiB at least
PAGES = 16
PASSED = 34             # numbers from 0 to 99 that can be divided by 3


def place():
    """The instruction known_place of the IOC: its offset in passPlace, and in the file."""
    program = paths.LATENCY_IOC
    symbols = {name: int(at, 16) for at, _, name in (line.split() for line in subprocess.run(
        ["nm", "--defined-only", program], capture_output=True, text=True, check=True).stdout.splitlines())}
    at = symbols["known_place"]
    for line in subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout.splitlines():
        part = line.split()
        if part[:1] == ["LOAD"] and int(part[2], 16) <= at < int(part[2], 16) + int(part[4], 16):
            return at - symbols["passPlace"], at - int(part[2], 16) + int(part[1], 16)
    raise AssertionError("no segment has known_place")


@pytest.fixture(scope="module")
def touched(tmp_path_factory):
    """A file on a disk, of which no page is in memory when nobody has it mapped."""
    path = tmp_path_factory.mktemp("disk") / "touched"
    path.write_bytes(os.urandom(PAGES * 4096))
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
    return path


@pytest.fixture(scope="module")
def ioc(module_ioc, touched):
    return module_ioc(files=[paths.TESTS / "ioc" / "latency.db", paths.TESTS / "ioc" / "uses.db"], kind="latencyIoc",
                      macros="US=1000", environ={"TOUCHED_FILE": str(touched)}).start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, tmp_path_factory):
    in_function, in_file = place()
    own = [{"name": name, "source": source, "keys": ["record"], "budget": 100} for name, source in (
        ("IN_FUNCTION", {"function": "passPlace", "object": "latencyIoc", "offset": in_function}),
        ("IN_FILE", {"object": "latencyIoc", "offset": in_file}))]
    before = load(tmp_path_factory.mktemp("queries"), own)
    before += [f'dbLoadRecords("{paths.DB / "ebpfMonQuery.template"}", "P=$(EBPFMON_P),Q={q}")' for q in SHIPPED]
    before += [f'ebpfMonQueryLoad "{paths.MONITOR_BOOT / "queries" / "memoryFiles.json"}"']
    m = module_monitor(before=before).start()
    m.wait_ioc(ioc)
    return m


def process(ioc, record):
    for _ in range(ROUNDS):
        ioc.put(f"{record}.PROC", 1)


def of_site(ioc, monitor, query, site):
    """Count and sum (bytes) of a function."""
    found = [(n, mb * 1e6) for i, s, n, mb in rows(monitor, query, "KEY1S", "KEY2S", "CNTS", "SUMS") if (i, s) == (ioc.name, site)]
    return sum(n for n, _ in found), sum(size for _, size in found)


def test_large_blocks_by_function(ioc, monitor):
    """Each block is memory of its own: known to the byte, and asked for by a function that only calls libCom."""
    start(monitor, "MEMORY_BY_SITE")
    process(ioc, "KEEP:ONE")
    until(lambda: of_site(ioc, monitor, "MEMORY_BY_SITE", "keepLarge")[0] >= ROUNDS, 20,
          lambda: str(rows(monitor, "MEMORY_BY_SITE", "KEY1S", "KEY2S", "KEY3S", "CNTS", "SUMS")))
    assert of_site(ioc, monitor, "MEMORY_BY_SITE", "keepLarge") == (ROUNDS, pytest.approx(ROUNDS * LARGE))
    said = [line for line in monitor.command("ebpfMonQueryStacks MEMORY_BY_SITE") if "keepLarge" in line]
    assert said and all("dbProcess;" in line and "keepOne;keepLarge;" in line for line in said), said
    assert monitor.get("MEMORY_BY_SITE_DROPPED_CNT") == 0
    stop(monitor, "MEMORY_BY_SITE")


def print_both(monitor):
    return "\n".join(line for query in BOTH for line in monitor.command(f"ebpfMonQueryPrint {query}"))


def test_small_blocks_by_function(ioc, monitor):
    """Small blocks make a heap grow, the first one or that of a thread: one of the two queries has it."""
    ioc.put("KEEP:MANY.A", 200)
    for query in BOTH:
        start(monitor, query)
    process(ioc, "KEEP:MANY")
    wanted = ROUNDS * 200 * SMALL

    def grown():
        return sum(of_site(ioc, monitor, query, "keepSmall")[1] for query in BOTH)

    until(lambda: grown() >= wanted - GROWS, 20, lambda: f"{grown()} of {wanted}: {print_both(monitor)}")
    assert grown() <= wanted + GROWS
    for query in BOTH:
        stop(monitor, query)


def test_more_than_stacks_can_be_had(ioc, monitor):
    """A heap of a thread grows page by page. If that is too fast for the stacks, the rest is in a row without a site, and the
    sum of all rows is right."""
    ioc.put("KEEP:MANY.A", BURST)
    for query in BOTH:
        start(monitor, query)
    ioc.put("KEEP:MANY.PROC", 1)

    def grown():
        return sum(of_site(ioc, monitor, query, site)[1] for query in BOTH for site in ("keepSmall", "-"))

    until(lambda: grown() >= BURST * SMALL - GROWS, 20, lambda: f"{grown()} of {BURST * SMALL}: {print_both(monitor)}")
    assert grown() <= BURST * SMALL + GROWS
    assert sum(of_site(ioc, monitor, query, "keepSmall")[1] for query in BOTH) > 0
    assert [monitor.get(f"{query}_DROPPED_CNT") for query in BOTH] == [0, 0]
    for query in BOTH:
        stop(monitor, query)


def major_faults(ioc):
    """The kernel's own count of all threads."""
    with open(f"/proc/{ioc.pid}/stat", encoding="ascii") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[9])


def test_pages_from_a_disk(ioc, monitor, touched):
    def forget():
        with open(touched, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    forget()
    before = major_faults(ioc)
    ioc.put("TOUCH.PROC", 1)
    if major_faults(ioc) - before < PAGES:
        pytest.skip(f"{touched} is on a file system that keeps its pages in memory")
    start(monitor, "MAJOR_FAULTS")
    before = major_faults(ioc)
    for _ in range(ROUNDS):
        forget()
        ioc.put("TOUCH.PROC", 1)

    def counted():
        return {record: n for _, _, record, n in rows(monitor, "MAJOR_FAULTS", "KEY1S", "KEY2S", "KEY3S", "CNTS")}

    until(lambda: sum(counted().values()) == major_faults(ioc) - before >= ROUNDS * PAGES, 20,
          lambda: f"{counted()} of {major_faults(ioc) - before}")
    assert ROUNDS * PAGES <= counted()[ioc.prefix + "TOUCH"] <= ROUNDS * PAGES + 10  # pages of libraries may be gone, too
    stop(monitor, "MAJOR_FAULTS")


def test_addresses_that_are_looked_up(ioc, monitor):
    start(monitor, "ADDRESS_LOOKUPS")
    process(ioc, "LOOKS")
    until(lambda: [(ioc.name, "localhost", ROUNDS)] == rows(monitor, "ADDRESS_LOOKUPS", "KEY1S", "KEY3S", "CNTS"), 20,
          lambda: str(rows(monitor, "ADDRESS_LOOKUPS", "KEY1S", "KEY2S", "KEY3S", "CNTS")))
    assert all(least > 0 for least, in rows(monitor, "ADDRESS_LOOKUPS", "MINS"))
    stop(monitor, "ADDRESS_LOOKUPS")


@pytest.mark.parametrize("query", ["IN_FUNCTION", "IN_FILE"])
def test_one_instruction(ioc, monitor, query):
    """An instruction behind a branch that is taken a known number of times."""
    start(monitor, query)
    process(ioc, "PLACES")
    until(lambda: rows(monitor, query, "KEY1S", "CNTS") == [(ioc.prefix + "PLACES", ROUNDS * PASSED)], 20,
          lambda: str(rows(monitor, query, "KEY1S", "CNTS")))
    stop(monitor, query)
