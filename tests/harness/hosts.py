# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts, A and B: two network namespaces, each with its IOCs and its monitor. They share a collector and the
kernel. So B's monitor also sees the processes of A, except those with a translated address."""
import re
import subprocess
import sys

from . import badlink, db
from .far import FarIoc
from .ioc import OURS
from .rotel import Rotel
from .wait import settled, until

NAMES = {"A": OURS.replace("*", "A"), "B": OURS.replace("*", "B")}  # the names of their IOCs begin with this
M64 = (1 << 64) - 1


class Hosts:
    def __init__(self, tmp):
        self.tmp = tmp
        self.link = badlink.BadLink(nat=True)
        self.rotel = Rotel()
        self.receiver = None
        self.made = []

    def __enter__(self):
        self.link.__enter__()
        self.rotel.start()
        return self

    def __exit__(self, *_):
        for thing in self.made:
            thing.discard()
        self.rotel.discard()
        self.link.__exit__()

    def keep(self, thing):
        self.made.append(thing)
        return thing

    def start_receiver(self, *records):
        """Starts an IOC at B. Clients write to its records, and each record processes END."""
        text = db.READY + db.counter("END") + "".join(db.record("ao", r, FLNK="$(P)END") for r in records)
        self.receiver = self.keep(FarIoc(self.tmp, self.link, db=text, name=NAMES["B"])).start()

    def start_sender(self, record, address="", **environ):
        """Starts an IOC at A. Its ROOT counts, and SEND writes this number to a record of the receiver. It searches
        the receiver at this address."""
        text = db.READY + db.counter("ROOT", FLNK="$(P)SEND") + \
            db.record("calcout", "SEND", INPA="$(P)ROOT", CALC="A", OUT=f"{self.receiver.prefix}{record} CA PP")
        ioc = FarIoc(self.tmp, self.link, end=self.link.a, db=text, name=f"{NAMES['A']}{len(self.made)}", environ={
            "EPICS_CA_ADDR_LIST": address and f"{address}:{self.receiver.port}", "EPICS_CA_AUTO_ADDR_LIST": "NO",
            **environ})
        ioc.to = record
        self.keep(ioc).start()
        until(lambda: (write(ioc), value(self.receiver, record))[1] > 0, 30, lambda: f"{ioc.name} connected")
        return ioc

    def start_monitor(self, new_monitor, host, before=()):
        """Starts a monitor that watches the IOCs of this host only. It reads packets: before, it does not see messages."""
        iocs = [i for i in self.made if i.name.startswith(NAMES[host])]
        monitor = new_monitor(iocs=NAMES[host] + "*", before=[
            f'epicsEnvSet OTEL_RESOURCE_ATTRIBUTES "host.name={host}"', f'ebpfMonOtlp "{self.rotel.url}" "traces"',
            *before]).start().at_level("trace", *iocs)
        monitor.wait("PACKET_STATE", lambda state: state == 1, 20)
        return monitor

    def send(self, ioc, count):
        """Writes so many numbers, one after the other. Returns them."""
        first = value(ioc, "ROOT") + 1
        for n in range(first, first + count):
            write(ioc)
            until(lambda: value(self.receiver, ioc.to) == n, 10, lambda: f"{ioc.to} {n}: {value(self.receiver, ioc.to)}")
        return list(range(first, first + count))

    def put(self, record, numbers, port, first=None):
        """Puts by a program at A, from this port. Returns number → sequence number of its message."""
        done = subprocess.run(badlink.in_namespace(self.link.a, [
            sys.executable, "-m", "tests.programs.put_from_port", self.link.addrB, self.receiver.port,
            self.link.addrA, port, "" if first is None else first, self.receiver.prefix + record, *numbers]),
            capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return dict(zip(numbers, map(int, done.stdout.split())))

    # --- what was exported -------------------------------------------------------------------------------
    def spans(self):
        """All spans. If both monitors exported the same message, only the span of A's monitor, because on a real host
        B's monitor would not see the process at A."""
        spans = self.rotel.spans()
        known = {(s["trace"], s["id"]) for s in spans if s["host"] == "A"}
        return [s for s in spans if s["host"] == "A" or (s["trace"], s["id"]) not in known]

    def chains(self, host, ioc, record, spans):
        """The chains of a record that this host's monitor exported: value of the record → list of chains."""
        found = {}
        records = {s["parent"]: s for s in spans if s["name"] == ioc.prefix + record}
        for s in spans:
            if s["host"] == host and s["name"] == ioc.prefix + record and "epics.chain.cause" in s["attributes"] and \
                    s["id"] in records:
                found.setdefault(int(float(records[s["id"]]["attributes"]["epics.record.value"])), []).append(s)
        return found

    def exported(self, numbers, *ends, least=1):
        """All spans. Waits until the chains with these numbers are exported for all ends (host, IOC, record), in traces of so many
        spans: that of a message may come later than its chain."""
        def is_exported(chains, n, spans):
            return n in chains and all(len(trace_of(chain, spans)) >= least for chain in chains[n])

        def all_exported():
            spans = self.spans()
            return all(is_exported(self.chains(*end, spans), n, spans) for end in ends for n in numbers)

        until(all_exported, 20, lambda: f"{numbers}: {[(e[0], sorted(self.chains(*e, self.spans()))) for e in ends]}")
        return settled(self.spans, 20, quiet=2)

    def check_joined(self, ioc, numbers):
        """For each number the chain at A and the chain at B are one trace."""
        for n, a, b, spans in self.both(ioc, numbers):
            trace = trace_of(a, spans)
            assert len(trace) == 7 and begins(trace) is a and a["parent"] == "", (n, trace)
            assert self._message(ioc, a, trace)["id"] == b["parent"], (n, trace)

    def check_apart(self, ioc, numbers, client):
        """Two traces. B sees the translated address of the client, and the parent of its chain is not exported."""
        for n, a, b, spans in self.both(ioc, numbers):
            self.sender_alone(ioc, n, a, spans)
            self._stranger(b, spans, client)

    def check_sender_alone(self, ioc, numbers):
        spans = self.exported(numbers, ("A", ioc, "ROOT"), least=4)
        assert not set(self.chains("B", self.receiver, ioc.to, spans)) & set(numbers)
        for n, (a,) in self._some(self.chains("A", ioc, "ROOT", spans), numbers):
            self.sender_alone(ioc, n, a, spans)

    def check_receiver_alone(self, ioc, numbers):
        """B knows the client's process, but no chain that sent the message."""
        spans = self.exported(numbers, ("B", self.receiver, ioc.to), least=4)
        assert not set(self.chains("A", ioc, "ROOT", spans)) & set(numbers)
        for n, (b,) in self._some(self.chains("B", self.receiver, ioc.to, spans), numbers):
            trace = trace_of(b, spans)
            message = begins(trace)
            assert len(trace) == 4 and {s["host"] for s in trace} == {"B"}, (n, trace)
            assert message["service"] == ioc.name and message["parent"] == "" and message["id"] == b["parent"], trace

    def check_receiver_of_a_stranger(self, ioc, numbers, client):
        spans = self.exported(numbers, ("B", self.receiver, ioc.to))
        for _, (b,) in self._some(self.chains("B", self.receiver, ioc.to, spans), numbers):
            self._stranger(b, spans, client)

    @staticmethod
    def _stranger(b, spans, client):
        trace = trace_of(b, spans)
        assert len(trace) == 3 and {s["host"] for s in trace} == {"B"} and begins(trace) is b, trace
        assert b["parent"] and b["parent"] not in {s["id"] for s in spans}, b
        assert b["kind"] == "SPAN_KIND_SERVER" and b["attributes"]["client.address"] == client, b
        assert f"(CA {client}:{b['attributes']['client.port']})" in b["attributes"]["epics.chain.cause"], b

    def both(self, ioc, numbers):
        """Number, A's chain, B's chain, all spans. Each chain is exported once."""
        spans = self.exported(numbers, ("A", ioc, "ROOT"), ("B", self.receiver, ioc.to), least=2)
        sent, got = (dict(self._some(self.chains(*end, spans), numbers))
                     for end in (("A", ioc, "ROOT"), ("B", self.receiver, ioc.to)))
        return [(n, *sent[n], *got[n], spans) for n in numbers]

    @staticmethod
    def _some(chains, numbers):
        assert {n: len(chains[n]) for n in numbers} == dict.fromkeys(numbers, 1), "each once"
        return [(n, chains[n]) for n in numbers]

    def _message(self, ioc, chain, trace):
        message, = (s for s in trace if s["kind"] == "SPAN_KIND_CLIENT")
        assert message["parent"] == chain["id"] and message["host"] == "A", message
        assert message["attributes"]["epics.put.link"] == ioc.prefix + "SEND.OUT", message
        assert message["attributes"]["client.address"] == self.link.addrA, message
        return message

    def sender_alone(self, ioc, n, chain, spans):
        """A's trace has no span of B, and is complete."""
        trace = trace_of(chain, spans)
        assert len(trace) == 4 and {s["host"] for s in trace} == {"A"}, (n, trace)
        assert begins(trace) is chain and chain["parent"] == "", (n, trace)
        self._message(ioc, chain, trace)


def write(ioc):
    ioc.command(f'dbpf "{ioc.prefix}ROOT.PROC" "1"')


def value(ioc, record):
    lines = ioc.command(f'dbgf "{ioc.prefix}{record}"')
    return int(float(re.search(r"DBF_DOUBLE: +(\S+)", "\n".join(lines))[1]))


def trace_of(span, spans):
    return [s for s in spans if s["trace"] == span["trace"]]


def begins(trace):
    """Returns the first span of a trace. Checks that only its parent is not in the trace, and that all others begin
    after their parents."""
    by_id = {s["id"]: s for s in trace}
    assert len(by_id) == len(trace), trace
    first, = (s for s in trace if s["parent"] not in by_id)
    for s in trace:
        assert s["start"] <= s["end"], s
        assert s is first or by_id[s["parent"]]["start"] <= s["start"], (by_id[s["parent"]], s)
    return first


def message_span(client, port, server, server_port, seq):
    """The span id of a message, calculated as in trace/traceSpans.c."""
    def mix(x):
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & M64
        x = (x ^ x >> 27) * 0x94d049bb133111eb & M64
        return x ^ x >> 31

    def number(address):
        return int.from_bytes(bytes(map(int, address.split("."))), "big")

    h = mix(3 + 0x9e3779b97f4a7c15 & M64)
    h = mix(h ^ (number(client) << 32 | number(server)))
    return f"{mix(h ^ (port << 48 | server_port << 32 | seq)):016x}"
