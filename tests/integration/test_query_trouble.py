# SPDX-License-Identifier: BSD-3-Clause
"""What a query shows is true, or said to be missing: when files of an IOC answer late, or not; when an IOC is not watched any more;
when calls are nested deeper than the kernel follows them; and of doubles that are very great, or no numbers."""
import math
import subprocess

import pytest
from tests.harness import ca, db, paths
from tests.harness.preload import preload
from tests.harness.queries import load, rows, start, stop
from tests.harness.wait import until

RATE = 10       # a second
CHAIN = 70      # records that process one in another
KEPT = 64       # pending return probes of a thread, by the kernel
CHAINS = 3
NAPS = 200      # how often the record NAPS sleeps
GREAT = 1.3e9   # more than the last bucket of a histogram begins with
CALLS = 5
# ROOT → OUTER, which first processes DEEP0 → … → DEEP69 by its input link, and then calls the known function.
DEEP = "".join([
    db.counter("ROOT", FLNK="$(P)OUTER"),
    db.record("aSub", "OUTER", SNAM="callKnown", FTA="DOUBLE", INPA=CALLS, FTB="DOUBLE", INPB="$(P)DEEP0 PP", FTVA="DOUBLE"),
    db.chain("DEEP", CHAIN),
])
QUICK = {"interval": 0.5, "budget": 100}
OF_CLIENT = {"where": [{"field": "thread", "is": "==", "value": "CAS-client"}]}
SPINS = {"name": "SPINS", "source": {"function": "spinFor", "object": "latencyIoc"}, "interval": 1, "budget": 100}
PLUGIN = {"name": "PLUGINS", "source": {"function": "pluginCall", "object": "libPlugin*"}} | QUICK
WAITS = {"name": "WAITS", "source": {"cpuWait": True}, "keys": ["thread"]} | QUICK
RECORD_TIME = {"name": "RECORD_TIME", "source": {"function": "dbProcess", "when": "duration"}} | OF_CLIENT | QUICK
IN_HAND = {"name": "IN_HAND", "source": {"function": "knownCall", "object": "latencyIoc"}, "keys": ["root", "record"]} | QUICK
VALUES = {"name": "VALUES", "source": {"function": "dbPut"}, "keys": [{"arg": 1, "at": [0], "as": "record"}],
          "value": {"arg": 3, "at": [0], "as": "double"}, "histogram": "log2"} | OF_CLIENT | QUICK
QUERIES = [SPINS, PLUGIN, WAITS, RECORD_TIME, IN_HAND, VALUES]


@pytest.fixture(scope="module")
def ioc(module_ioc, tmp_path_factory):
    deep = tmp_path_factory.mktemp("deep") / "deep.db"
    deep.write_text(DEEP)
    return module_ioc(files=[paths.TESTS / "ioc" / "latency.db", deep], kind="latencyIoc", macros="US=2000,CALLS=1").start()


@pytest.fixture(scope="module")
def trouble(tmp_path_factory):
    """The file that says how the files of the IOC answer (tests/harness/lateFiles.c)."""
    return tmp_path_factory.mktemp("late") / "trouble"


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, trouble, tmp_path_factory):
    tmp = tmp_path_factory.mktemp("queries")
    m = module_monitor(before=load(tmp, QUERIES), environ=preload(tmp, "lateFiles") | {"LATE_FILES": str(trouble)}).start()
    m.wait_ioc(ioc)
    return m


def dropped(monitor, query):
    return monitor.get(f"{query}_DROPPED_CNT")


def looks(monitor, query, count):
    """Waits until the query has looked so many times."""
    for _ in range(count):
        before = ca.time_stamp(f"{monitor.prefix}{query}_EVENT_CNT")
        until(lambda before=before: ca.time_stamp(f"{monitor.prefix}{query}_EVENT_CNT") != before, 20, f"a look of {query}")


def test_rate_when_a_look_takes_long(ioc, monitor, trouble):
    """A look takes 4 s. What comes meanwhile belongs to this time, not to the interval before, and the next look has its own."""
    ioc.put("SPIN.SCAN", ".1 second")
    start(monitor, "SPINS")
    until(lambda: monitor.get("SPINS_RATE") > RATE / 2, 20, lambda: str(monitor.get("SPINS_RATE")))
    trouble.write_text("late")
    until(lambda: not trouble.exists(), 20, "a look at mappings")
    rates, began = [], monitor.get("SPINS_EVENT_CNT")
    until(lambda: rates.append(monitor.get("SPINS_RATE")) or monitor.get("SPINS_EVENT_CNT") > began + 6 * RATE, 30,
          lambda: str(rates))
    stop(monitor, "SPINS")
    ioc.put("SPIN.SCAN", "Passive")
    assert RATE / 4 < min(rates) <= max(rates) < 2 * RATE, sorted(set(rates))


def build(path, constant):
    """A library with this function. Another constant makes another file."""
    code = f"volatile long pluginSum;\nvoid pluginCall(long n)\n{{\n    pluginSum += n + {constant};\n}}\n"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-x", "c", "-o", path, "-"], input=code, text=True, check=True)


def call(ioc, calls, unload):
    ioc.put("PLUGIN.B", int(unload), wait=True)
    ioc.put("PLUGIN.A", calls, wait=True)
    ioc.put("PLUGIN.PROC", 1, wait=True)


def test_library_that_does_not_answer_at_first(ioc, monitor, trouble, tmp_path):
    """The IOC loads another library while its files do not answer. When they do, calls count, though nothing is mapped anew."""
    library = tmp_path / "libPlugin.so"
    build(library, 1)
    ioc.command(f'epicsEnvSet PLUGIN "{library}"')
    call(ioc, 0, unload=False)
    start(monitor, "PLUGINS")
    call(ioc, CALLS, unload=True)
    monitor.wait("PLUGINS_EVENT_CNT", lambda n: n == CALLS)
    library.unlink()
    build(library, 2)
    trouble.write_text("silent")
    call(ioc, CALLS, unload=False)
    until(lambda: monitor.text("PLUGINS_MSG") == f"{ioc.name}: its files do not answer", 20, lambda: monitor.text("PLUGINS_MSG"))
    trouble.unlink()

    def is_seen():
        call(ioc, 1, unload=False)
        return monitor.get("PLUGINS_EVENT_CNT") > CALLS

    until(is_seen, 30, lambda: monitor.text("PLUGINS_MSG"))
    until(lambda: monitor.text("PLUGINS_MSG").startswith("looks at 1 IOC"), 20, lambda: monitor.text("PLUGINS_MSG"))
    stop(monitor, "PLUGINS")


def test_calls_that_are_too_deep(ioc, monitor):
    """From the first chain on each call is counted, or told to be missing: the kernel tells no end of those deeper than 64."""
    start(monitor, "RECORD_TIME")
    for n in range(1, CHAINS + 1):
        ioc.put("ROOT.PROC", 1, wait=True)
        calls = n * (CHAIN + 2)

        def numbers():
            return monitor.get("RECORD_TIME_EVENT_CNT"), dropped(monitor, "RECORD_TIME")

        until(lambda calls=calls: sum(numbers()) == calls, 20, lambda calls=calls: f"{calls} calls, counted and not: {numbers()}")
    # own probes at puts need some of the 64
    assert n * (CHAIN + 2 - KEPT) <= dropped(monitor, "RECORD_TIME") < n * (CHAIN + 6 - KEPT), dropped(monitor, "RECORD_TIME")
    stop(monitor, "RECORD_TIME")


def test_record_around_a_deep_chain(ioc, monitor):
    """When such a chain has returned, the record that began it is known."""
    start(monitor, "IN_HAND")
    for _ in range(CHAINS):
        ioc.put("ROOT.PROC", 1, wait=True)
    monitor.wait("IN_HAND_EVENT_CNT", lambda n: n >= CHAINS * CALLS)
    assert rows(monitor, "IN_HAND", "KEY1S", "KEY2S", "CNTS") == [(ioc.prefix + "ROOT", ioc.prefix + "OUTER", CHAINS * CALLS)]
    stop(monitor, "IN_HAND")


def test_great_doubles_and_no_numbers(ioc, monitor):
    """A great value has its maximum and its percentiles; what is no number is missing in all of them."""
    start(monitor, "VALUES")
    for value in (GREAT, math.nan, GREAT, -math.nan, GREAT):
        ioc.put("SPIN:END.A", value, wait=True)
    columns = ("KEY1S", "CNTS", "SUMS", "MINS", "MAXS", "P50S", "P99S")
    wanted = [(ioc.prefix + "SPIN:END", 3, 3 * GREAT, *[GREAT] * 4)]
    until(lambda: rows(monitor, "VALUES", *columns) == wanted, 20, lambda: f"{wanted}, not {rows(monitor, 'VALUES', *columns)}")
    assert dropped(monitor, "VALUES") == 2
    until(lambda: monitor.get("VALUES_MAX") == 0, 20, "a look without puts")
    ioc.put("SPIN:END.A", GREAT, wait=True)
    until(lambda: monitor.get("VALUES_MAX") == GREAT, 5, lambda: str(monitor.get("VALUES_MAX")))
    stop(monitor, "VALUES")


def test_waits_of_an_ioc_that_is_switched_off(ioc, monitor):
    """Its threads go on to wait for CPUs. Nobody asks any more, so nothing is missing."""
    start(monitor, "WAITS")
    ioc.put("NAPS.PROC", 1, wait=True)
    monitor.wait("WAITS_EVENT_CNT", lambda n: n >= NAPS)
    monitor.set_filter(LEVEL="off")
    until(lambda: monitor.text("WAITS_MSG") == "looks at 0 IOCs", 20, lambda: monitor.text("WAITS_MSG"))
    before = dropped(monitor, "WAITS")
    ioc.put("NAPS.PROC", 1, wait=True)
    looks(monitor, "WAITS", 2)
    after = dropped(monitor, "WAITS")
    stop(monitor, "WAITS")
    monitor.set_filter(LEVEL="chains")
    monitor.wait_ioc(ioc)
    assert after - before < NAPS / 4, (before, after)  # not 0: each thread may have missed a switch before
