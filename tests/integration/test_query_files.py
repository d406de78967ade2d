# SPDX-License-Identifier: BSD-3-Clause
"""Queries that come with ebpfMon, with known results: routines that sleep and map memory; files and names that the
shell of the IOC opens and looks up; clients with sockets of this test."""
import contextlib
import ctypes
import getpass
import os
import socket
import struct
import time
from pathlib import Path

import pytest
from tests.harness import db, loopback, paths, rawca
from tests.harness.queries import rows, wait_state
from tests.harness.wait import until
from tests.integration.test_subscriptions import Subscriber

QUERIES = paths.MONITOR_BOOT / "queries"
USED = """SLEEPS_BY_RECORD SLEEPS_BY_SITE LOCKS_BY_RECORD MEMORY_MAPPED PAGE_FAULTS FILES_OPENED FILES_REFUSED NAME_LOOKUPS SYSCALLS_BY_FILE SLOW_CLIENTS SLOW_READERS TCP_RETRANSMITS UPDATES_POSTED UPDATES_FILTERED PUTS_REFUSED""".split()
ROUNDS = 10
SLOW_UPDATES = 600  # of an array: more than the buffers of a connection hold


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc", macros="US=5000").start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc):
    template = paths.DB / "ebpfMonQuery.template"
    before = [f'dbLoadRecords("{template}", "P=$(EBPFMON_P),Q={q}")' for q in USED]
    before += [f'ebpfMonQueryLoad "{QUERIES / f}.json"' for f in ("sleeps", "memoryFiles", "systemCalls", "records")]
    m = module_monitor(before=before).start()
    m.wait_ioc(ioc)
    return m


class Running:
    """A query while it runs."""

    def __init__(self, monitor, name):
        self.monitor, self.name = monitor, name

    def __enter__(self):
        self.monitor.put(f"{self.name}_RUN", 1)
        until(lambda: "looks at 1 IOC" in self.monitor.text(f"{self.name}_MSG"), 20,
              lambda: self.monitor.text(f"{self.name}_MSG"))
        return self

    def __exit__(self, *_):
        self.monitor.put(f"{self.name}_RUN", 0)

    def row(self, keys, columns, count):
        """The columns of the row with these first keys, as soon as its count is large enough."""
        def read():
            names = [f"KEY{i + 1}S" for i in range(len(keys))]
            table = [self.monitor.list(f"{self.name}_{n}") for n in [*names, "CNTS", *columns]]
            for row in zip(*table):
                if row[:len(keys)] == tuple(keys) and row[len(keys)] >= count:
                    return row[len(keys):]
            return None

        return until(read, 15, lambda: f"{keys}: {self.monitor.command('ebpfMonQueryPrint ' + self.name)}")


def test_where_a_record_sleeps(ioc, monitor):
    with Running(monitor, "SLEEPS_BY_RECORD") as query:
        before = ioc.get("SLEEP:SUM")
        for _ in range(ROUNDS):
            ioc.put("SLEEP.PROC", 1)
        keys = (ioc.name, ioc.prefix + "SLEEP:BUSY", ioc.prefix + "SLEEP", "clock_nanosleep")
        count, total = query.row(keys, ["SUMS"], ROUNDS)
        assert count == ROUNDS and ROUNDS * 5000 <= total <= ioc.get("SLEEP:SUM") - before


def test_which_function_sleeps(ioc, monitor):
    with Running(monitor, "SLEEPS_BY_SITE") as query:
        before = ioc.get("SLEEP:SUM")
        for _ in range(ROUNDS):
            ioc.put("SLEEP.PROC", 1)
        count, total = query.row((ioc.name, ioc.prefix + "SLEEP", "sleepFor", "clock_nanosleep"), ["SUMS"], ROUNDS)
        assert count == ROUNDS and ROUNDS * 5000 <= total <= ioc.get("SLEEP:SUM") - before
        said = [line for line in monitor.command("ebpfMonQueryStacks SLEEPS_BY_SITE") if "sleepFor" in line]
        assert said and all("dbProcess;" in line for line in said), said


def test_locks(ioc, monitor):
    """GATE waits for a mutex that another thread holds; then a put waits for the lock set that another client's put
    holds."""
    lines = (paths.TESTS / "ioc" / "latencySub.c").read_text().splitlines()
    created = 1 + next(n for n, line in enumerate(lines) if "gate = epicsMutexMustCreate()" in line)
    ioc.put("HOLD:BUSY.SNAM", "sleepFor")
    with Running(monitor, "LOCKS_BY_RECORD") as query:
        for _ in range(ROUNDS):
            ioc.put("GATE.PROC", 1)
        count, total = query.row((ioc.name, "CAS-client", ioc.prefix + "GATE", f"latencySub.c:{created}"), ["SUMS"], ROUNDS)
        assert count == ROUNDS and ROUNDS * 1000 <= total <= ioc.get("GATE.VALA")
        shared = [ioc.prefix + name for name in ("HOLD", "SHARED", "WAIT", "HOLD:BUSY")]

        # A scan thread holds the lock set 30 ms of 100. This put waits for it, too; one just before each put to WAIT would wait in
        # its place.
        ioc.put("HOLD.SCAN", ".1 second")

        def waited():
            ioc.put("WAIT.PROC", 1)
            found = rows(monitor, "LOCKS_BY_RECORD", "KEY1S", "KEY2S", "KEY3S", "KEY4S")
            return any((ioc.name, "CAS-client", ioc.prefix + "WAIT", f"{name} (lock set)") in found for name in shared)

        until(waited, 30, lambda: monitor.command("ebpfMonQueryPrint LOCKS_BY_RECORD"))
        ioc.put("HOLD.SCAN", "Passive")
    ioc.put("HOLD:BUSY.SNAM", "spinFor")


def test_updates_that_a_filter_leaves_out(ioc, monitor):
    """dbnd lets each third update through, as its client says. Its neighbour has no filter."""
    name = ioc.prefix + "STEPS:A"
    band = name + '.{"dbnd":{"abs":2.5}}'
    ioc.put("STEPS:A", 0)
    some, all_ = Subscriber(ioc, band, "some"), Subscriber(ioc, name, "all")
    with Running(monitor, "UPDATES_POSTED") as posted, Running(monitor, "UPDATES_FILTERED") as filtered:
        for value in range(1, 31):
            ioc.put("STEPS:A", value)
        assert some.take(11) == [0, *range(3, 31, 3)] and len(all_.take(31)) == 31
        assert posted.row((ioc.name, band[:39]), [], 30)[0] == 30 == posted.row((ioc.name, name), [], 30)[0]
        assert filtered.row((ioc.name, band[:39]), [], 20)[0] == 20
        assert (ioc.name, name) not in rows(monitor, "UPDATES_FILTERED", "KEY1S", "KEY2S")
    some.close()
    all_.close()


def test_puts_that_qsrv_2_refuses(new_ioc, monitor, tmp_path):
    """Access security lets everybody write A, and nobody write B, as its client says."""
    (tmp_path / "refuse.acf").write_text("ASG(DEFAULT) { RULE(1, READ) RULE(1, WRITE) } ASG(SHUT) { RULE(1, READ) }\n")
    ioc = new_ioc(db.READY + db.record("ao", "A") + db.record("ao", "B", ASG="SHUT"), kind="pvxs", acf=tmp_path / "refuse.acf").start()
    monitor.wait_ioc(ioc)
    monitor.put("PUTS_REFUSED_RUN", 1)
    wait_state(monitor, "PUTS_REFUSED", "Running")
    with loopback.pva_context(ioc.port) as pva:
        for value in range(3):
            pva.put(ioc.prefix + "A", value)
            with pytest.raises(Exception, match="not permitted"):
                pva.put(ioc.prefix + "B", value)
    until(lambda: rows(monitor, "PUTS_REFUSED", "KEY1S", "KEY2S", "KEY3S", "KEY4S", "CNTS") ==
          [(ioc.name, ioc.prefix + "B", getpass.getuser(), "127.0.0.1", 3)], 15, lambda: monitor.command("ebpfMonQueryPrint PUTS_REFUSED"))
    monitor.put("PUTS_REFUSED_RUN", 0)
    ioc.kill()
    monitor.wait_gone(ioc.pid)


def test_memory(ioc, monitor):
    """MAPS maps 64 KiB each time."""
    with Running(monitor, "MEMORY_MAPPED") as mapped:
        for _ in range(ROUNDS):
            ioc.put("MAPS.PROC", 1)
        count, total = mapped.row((ioc.name, "CAS-client", ioc.prefix + "MAPS"), ["SUMS"], ROUNDS)
        assert count == ROUNDS and total == pytest.approx(ROUNDS * 65536e-6)


def test_page_faults(ioc, monitor):
    """MAPS touches each of its 16 pages. A page of a library may be new, too."""
    ioc.put("MAPS.PROC", 1)  # now all its other pages are in memory
    with Running(monitor, "PAGE_FAULTS") as query:
        for _ in range(ROUNDS):
            ioc.put("MAPS.PROC", 1)
        count, = query.row((ioc.name, "CAS-client", ioc.prefix + "MAPS"), [], 16 * ROUNDS)
        assert 16 * ROUNDS <= count < 17 * ROUNDS


def test_files(ioc, monitor):
    (ioc.tmp / "there.cmd").write_text("# nothing\n")
    with Running(monitor, "FILES_OPENED") as opened, Running(monitor, "FILES_REFUSED") as refused:
        for _ in range(3):
            ioc.command("< there.cmd")
            ioc.command("< notThere.cmd")
        thread = open(f"/proc/{ioc.pid}/comm").read().strip()
        assert opened.row((ioc.name, thread, "-", "there.cmd"), [], 3)[0] == 3
        assert refused.row((ioc.name, thread, "notThere.cmd", "-2"), [], 3)[0] == 3


def test_names(ioc, monitor):
    """The log client looks up the name of its server."""
    with Running(monitor, "NAME_LOOKUPS") as query:
        ioc.command("epicsEnvSet EPICS_IOC_LOG_INET localhost")
        ioc.command("iocLogInit")
        thread = open(f"/proc/{ioc.pid}/comm").read().strip()
        count, longest = query.row((ioc.name, thread, "localhost"), ["MAXS"], 1)
        assert count >= 1 and longest > 0


def test_calls_by_file_and_peer(ioc, monitor):
    """A connection is shown by the address of its client, an open file by its whole path, a file that is not open by
    its name."""
    fifo, short = ioc.tmp / "stays.fifo", ioc.tmp / "short.cmd"
    os.mkfifo(fifo)
    short.write_text("# a line\n")
    with Running(monitor, "SYSCALLS_BY_FILE") as query, socket.create_connection(("127.0.0.1", ioc.port), 60) as connection:
        client = rawca.RawCa(connection=connection)
        peer = client.address
        for _ in range(ROUNDS):
            client.send(rawca.message(rawca.ECHO))
            client.until(rawca.ECHO)
        assert 1 <= query.row((ioc.name, "-", "sendto", peer), [], 1)[0] <= ROUNDS + 1  # some answers go together
        ioc.command("< short.cmd")
        assert query.row((ioc.name, "-", "close", "short.cmd"), [], 1)[0] == 1
        ioc.process.send(f"< {fifo.name}")
        with open(fifo, "w", encoding="ascii") as lines:  # the IOC reads from the file until we close it
            lines.write("# a line\n")
            lines.flush()
            shown = str(fifo) if len(str(fifo)) <= 39 else "..." + str(fifo)[-36:]
            query.row((ioc.name, "-", "read", shown), [], 1)


def sends(ioc, thread):
    """True if a thread of this name is in the system call sendto."""
    tasks = [t for t in Path(f"/proc/{ioc.pid}/task").iterdir() if (t / "comm").read_text() == thread + "\n"]
    return any((t / "syscall").read_text().split()[0] in ("44", "206") for t in tasks)  # x86-64, aarch64


def slow_reader(stack, ioc, user="raw", host="rawhost", count=SLOW_UPDATES):
    """A client with small buffers that subscribes so often to an array, and does not read its updates."""
    connection = stack.enter_context(socket.socket())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(60)
    connection.connect(("127.0.0.1", ioc.port))
    client = rawca.RawCa(connection=connection, user=user, host=host)
    sid = client.sid(ioc.prefix + "ARRAY.VALA")
    mask = struct.pack(">fffHH", 0, 0, 0, 1, 0)  # DBE_VALUE
    client.send(b"".join(rawca.message(1, mask, rawca.DOUBLE, 2000, sid, n) for n in range(count)))  # CA_PROTO_EVENT_ADD
    return client


def test_slow_client(ioc, monitor):
    """A client subscribes to more than the buffers of its connection can hold, and does not read for a time."""
    with Running(monitor, "SLOW_CLIENTS") as query, contextlib.ExitStack() as stack:
        client = slow_reader(stack, ioc)
        until(lambda: sends(ioc, "CAS-event"), 20, "the IOC waits for this client")
        begin = time.monotonic()
        until(lambda: time.monotonic() > begin + 0.05, 5, "the time for which this client does not read")
        waited = (time.monotonic() - begin) * 1e6
        for _ in range(SLOW_UPDATES):
            client.until(1)
        times, longest = query.row((ioc.name, client.address), ["MAXS"], 1)
        assert times >= 1 and longest >= waited


def test_slow_client_by_user_and_host(ioc, monitor):
    """Two clients with the same user and host read slowly, and one that reads at once. Who they are is what they say to the server."""
    with Running(monitor, "SLOW_READERS") as query, contextlib.ExitStack() as stack:
        slow = [slow_reader(stack, ioc, "late", "far.example") for _ in range(2)]
        quick = slow_reader(stack, ioc, "quick", "near.example", count=1)
        quick.until(1)
        until(lambda: sends(ioc, "CAS-event"), 20, "the IOC waits for these clients")
        begin = time.monotonic()
        until(lambda: time.monotonic() > begin + 0.05, 5, "the time for which they do not read")
        waited = (time.monotonic() - begin) * 1e6
        for client in slow:
            for _ in range(SLOW_UPDATES):
                client.until(1)
        times, longest = query.row((ioc.name, "late@far.example"), ["MAXS"], 2)
        assert times >= 2 and longest >= waited
        assert not [row for row in rows(monitor, "SLOW_READERS", "KEY1S", "KEY2S") if row[1] != "late@far.example"]


def test_retransmissions(monitor):
    """The other end of the connection drops all data. The client's socket counts the retransmissions."""
    monitor.put("TCP_RETRANSMITS_RUN", 1)
    wait_state(monitor, "TCP_RETRANSMITS", "Running")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        far, _ = server.accept()
        nothing = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))  # BPF_RET: 0 bytes of each segment
        far.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HxxxxxxP", 1, ctypes.addressof(nothing)))  # SO_ATTACH_FILTER
        client.sendall(b"lost")

        def truth():
            return struct.unpack_from("I", client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 100)[0]

        who = "{} to {}:{}".format(client.getsockname()[1], *client.getpeername())

        def agrees():
            before, found = truth(), dict(rows(monitor, "TCP_RETRANSMITS", "KEY1S", "CNTS"))
            # The kernel does not run the program of a tracepoint that interrupts another BPF program on this CPU
            # (trace_call_bpf).
            return before == truth() and before >= 3 and before - 1 <= found.get(who, 0) <= before

        until(agrees, 15, lambda: f"{who}: {truth()} {rows(monitor, 'TCP_RETRANSMITS', 'KEY1S', 'CNTS')}")
        far.close()
    monitor.put("TCP_RETRANSMITS_RUN", 0)
