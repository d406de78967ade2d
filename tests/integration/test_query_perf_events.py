# SPDX-License-Identifier: BSD-3-Clause
"""Events of the kernel can be sources of queries: the results are the kernel's own counts for the thread."""
import os

import pytest
from tests.harness import paths
from tests.harness.queries import rows, start, stop, wait_state, watch
from tests.harness.wait import until

ROUNDS = 50
FEW = 10  # new pages of libraries and stacks


def of_event(name, event, **more):
    return {"name": name, "source": {"event": event}, "keys": ["tid", "record"], "budget": 100} | more


KERNEL = {"FAULTS": "page-faults", "MINOR": "minor-faults", "MAJOR": "major-faults", "SWITCHES": "context-switches",
          "MIGRATIONS": "cpu-migrations", "ALIGNED": "alignment-faults", "EMULATED": "emulation-faults"}
CPU = {"CYCLES": "cycles", "INSTRUCTIONS": "instructions", "CACHE": "cache-references", "MISSES": "cache-misses",
       "BRANCHES": "branches", "GUESSES": "branch-misses"}
QUERIES = [*(of_event(n, e) for n, e in KERNEL.items()), *(of_event(n, e, sample=1000000) for n, e in CPU.items()),
           of_event("TENTH", "page-faults", sample=10, keys=["cpu"])]


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc", macros="US=2000").start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, tmp_path_factory):
    return watch(module_monitor, ioc, tmp_path_factory, QUERIES)


@pytest.fixture(scope="module")
def locked(module_ioc, monitor):
    """An IOC with locked memory: Base locks it if the user may do so."""
    ioc = module_ioc(files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc", macros="US=2000", may_lock=True).start()
    monitor.wait_ioc(ioc)
    with open(f"/proc/{ioc.pid}/status") as status:
        if "VmLck:\t       0 kB" in status.read():
            pytest.skip("this user may not lock memory")
    return ioc


def threads(ioc, name):
    tasks = f"/proc/{ioc.pid}/task"
    return [int(t) for t in os.listdir(tasks) if open(f"{tasks}/{t}/comm").read().strip() == name]


def counted(ioc, tid):
    """The kernel's counts of minor and major faults and of context switches of a thread."""
    with open(f"/proc/{ioc.pid}/task/{tid}/stat") as stat, open(f"/proc/{ioc.pid}/task/{tid}/status") as status:
        fields = stat.read().rsplit(")", 1)[1].split()
        switches = sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)
    return {"MINOR": int(fields[7]), "MAJOR": int(fields[9]), "FAULTS": int(fields[7]) + int(fields[9]), "SWITCHES": switches}


def of_thread(monitor, query, tid):
    return sum(count for key, count in rows(monitor, query, "KEY1S", "CNTS") if key == str(tid))


@pytest.mark.parametrize("name, record", [("FAULTS", "MAPS"), ("MINOR", "MAPS"), ("SWITCHES", "SLEEP")])
def test_each_one_is_counted(ioc, monitor, name, record):
    """The query counts as many events as the kernel does for this thread. The thread sleeps before and after the puts,
    so it makes no other events."""
    ioc.put(f"{record}.PROC", 1)
    tid, = threads(ioc, "CAS-client")
    before = counted(ioc, tid)[name]
    start(monitor, name)
    for _ in range(ROUNDS):
        ioc.put(f"{record}.PROC", 1)
    until(lambda: of_thread(monitor, name, tid) == counted(ioc, tid)[name] - before, 20,
          lambda: f"{rows(monitor, name, 'KEY1S', 'KEY2S', 'CNTS')} of {counted(ioc, tid)[name] - before} of {tid}")
    assert of_thread(monitor, name, tid) >= ROUNDS
    stop(monitor, name)


def test_page_faults_of_a_record(ioc, monitor):
    """MAPS touches 16 new pages."""
    ioc.put("MAPS.PROC", 1)
    start(monitor, "FAULTS")
    for _ in range(ROUNDS):
        ioc.put("MAPS.PROC", 1)

    def of_record():
        return sum(c for r, c in rows(monitor, "FAULTS", "KEY2S", "CNTS") if r == f"{ioc.prefix}MAPS")

    until(lambda: 16 * ROUNDS <= of_record() < 16 * ROUNDS + FEW, 20, lambda: str(rows(monitor, "FAULTS", "KEY1S", "KEY2S", "CNTS")))
    stop(monitor, "FAULTS")


def test_every_tenth(ioc, monitor):
    """Every tenth event of all processes on the CPU is seen, not a random one. So the number for this IOC is an
    estimate."""
    ioc.put("MAPS.PROC", 1)
    start(monitor, "TENTH")
    for _ in range(2 * ROUNDS):
        ioc.put("MAPS.PROC", 1)
    wanted = 2 * ROUNDS * 16
    until(lambda: monitor.get("TENTH_EVENT_CNT") >= wanted / 2, 20, lambda: str(rows(monitor, "TENTH", "KEY1S", "CNTS")))
    events = monitor.get("TENTH_EVENT_CNT")
    assert events % 10 == 0 and events <= 2 * wanted
    stop(monitor, "TENTH")


def test_migrations(ioc, monitor):
    """If a sleeping thread may only run on another CPU, it is woken there."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("there is one CPU")
    tid, = threads(ioc, "CAS-client")
    start(monitor, "MIGRATIONS")
    for n in range(ROUNDS):
        os.sched_setaffinity(tid, {cpus[n % 2]})
        ioc.put("READY.PROC", 1)
    os.sched_setaffinity(tid, cpus)
    until(lambda: of_thread(monitor, "MIGRATIONS", tid) >= ROUNDS - 1, 20, lambda: str(rows(monitor, "MIGRATIONS", "KEY1S", "CNTS")))
    stop(monitor, "MIGRATIONS")


@pytest.mark.parametrize("name", ["MAJOR", "ALIGNED", "EMULATED"])
def test_rare_ones_can_be_had(monitor, name):
    start(monitor, name)
    stop(monitor, name)


@pytest.mark.parametrize("name", CPU)
def test_events_of_the_cpu(monitor, name):
    """The query runs if the machine counts these events. Else its message tells the reason."""
    monitor.put(f"{name}_RUN", 1)
    until(lambda: monitor.get(f"{name}_STATE", as_string=True) in ("Running", "Failed"), 20, lambda: monitor.text(f"{name}_MSG"))
    if monitor.get(f"{name}_STATE", as_string=True) == "Failed":
        assert f"this machine does not count {CPU[name]}: many virtual machines" in monitor.text(f"{name}_MSG")
        return
    wait_state(monitor, name, "Running")
    stop(monitor, name)


def test_locked_memory_has_no_page_faults(ioc, locked, monitor):
    """If memory is locked, the kernel provides all pages when the memory is mapped. It counts this for the thread as
    faults, but no page fault happens."""
    for each in ioc, locked:
        each.put("MAPS.PROC", 1)
    tid, = threads(locked, "CAS-client")
    before = counted(locked, tid)["FAULTS"]
    start(monitor, "FAULTS", iocs=2)
    for each in locked, ioc:
        for _ in range(ROUNDS):
            each.put("MAPS.PROC", 1)
    until(lambda: any(r == f"{ioc.prefix}MAPS" and c >= 16 * ROUNDS for r, c in rows(monitor, "FAULTS", "KEY2S", "CNTS")), 20,
          lambda: str(rows(monitor, "FAULTS", "KEY1S", "KEY2S", "CNTS")))
    assert of_thread(monitor, "FAULTS", tid) < FEW and counted(locked, tid)["FAULTS"] - before >= 16 * ROUNDS
    stop(monitor, "FAULTS")
