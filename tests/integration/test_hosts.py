# SPDX-License-Identifier: BSD-3-Clause
"""Two network namespaces stand for two hosts, each with a monitor: chains of both join to one trace if a message of one
caused the other, and only then."""
import sys

import pytest
from tests.harness import badlink
from tests.harness.far import there
from tests.harness.hosts import Hosts, begins, message_span, trace_of
from tests.harness.putlog import PutLog
from tests.harness.wait import until

PUTS = 12
RELAY_ADDRESS = "192.0.2.3"

# A relay opens a connection to the second address for each connection to the first one.
RELAY = """
import socket, sys, threading
address, to, port = sys.argv[1:]
listener = socket.create_server((address, int(port)))
print("ready", flush=True)
def carry(a, b):
    while data := a.recv(65536):
        b.sendall(data)
    b.shutdown(socket.SHUT_WR)
while True:
    near, _ = listener.accept()
    far = socket.create_connection((to, int(port)))
    for way in (near, far), (far, near):
        threading.Thread(target=carry, args=way, daemon=True).start()
"""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with Hosts(tmp_path_factory.mktemp("hosts")) as made:
        made.start_receiver("DIRECT", "TRANSLATED", "MOVED", "RELAYED", "REUSED", "WRAPPED")
        yield made


@pytest.fixture(scope="module")
def relay(hosts):
    badlink.ip("-n", hosts.link.b, "addr", "add", RELAY_ADDRESS + "/24", "dev", badlink.INTERFACE)
    process = there(hosts.link.b, [sys.executable, "-c", RELAY, RELAY_ADDRESS, hosts.link.addrB, hosts.receiver.port])
    until(lambda: "ready" in process.lines or not process.running, 10, process.output)
    yield process
    process.kill()


@pytest.fixture(scope="module")
def senders(hosts, relay):
    link = hosts.link
    made = {record: hosts.start_sender(record, address) for record, address in
            (("DIRECT", link.addrB), ("TRANSLATED", link.natB), ("MOVED", link.movedB))}
    made["RELAYED"] = hosts.start_sender("RELAYED", EPICS_CA_NAME_SERVERS=f"{RELAY_ADDRESS}:{hosts.receiver.port}")
    return made


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return PutLog(tmp_path_factory.mktemp("logs") / "puts.json")


@pytest.fixture(scope="module", autouse=True)
def monitors(hosts, senders, module_monitor, log):
    return [hosts.start_monitor(module_monitor, "A"), hosts.start_monitor(module_monitor, "B", before=[log.command()])]


def test_chains_of_two_hosts_join(hosts, senders):
    """Two monitors export the chain at A, its message and the chain at B. These are one trace."""
    hosts.check_joined(senders["DIRECT"], hosts.send(senders["DIRECT"], PUTS))


def test_addresses_translated(hosts, senders):
    """B sees another address and port. The result is two traces, each complete."""
    hosts.check_apart(senders["TRANSLATED"], hosts.send(senders["TRANSLATED"], PUTS), hosts.link.natA)


def test_sequence_numbers_translated(hosts, senders):
    """B also sees other sequence numbers. Only at B they pass 2**32."""
    numbers = hosts.send(senders["MOVED"], PUTS)
    hosts.check_apart(senders["MOVED"], numbers, hosts.link.movedA)


def test_relayed(hosts, senders, relay):
    """A relay has its own connection to B: B's trace begins with the put of the relay."""
    ioc = senders["RELAYED"]
    numbers = hosts.send(ioc, PUTS)
    for n, a, b, spans in hosts.both(ioc, numbers):
        hosts.sender_alone(ioc, n, a, spans)
        trace = trace_of(b, spans)
        message = begins(trace)
        assert len(trace) == 4 and {s["host"] for s in trace} == {"B"}, (n, trace)
        assert message["id"] == b["parent"] and message["parent"] == "" and "python" in message["service"], trace
        assert message["attributes"]["client.address"] == hosts.link.addrB, message


def check_messages(hosts, log, record, port, seqs, chosen=()):
    """Each put of a program is exported once, as its own trace. The id of its message follows from connection and
    sequence number. "chosen": a program that chooses its sequence numbers itself (TCP_REPAIR) may have seen those of somebody
    else, so they do not tell whose put it is. Returns the puts that were seen in the IOC and in packets."""
    spans = hosts.exported(seqs, ("B", hosts.receiver, record))
    lines = log.of(hosts.receiver.prefix + record)
    assert [int(o["value"]) for o in lines] == list(seqs), lines
    chains = hosts.chains("B", hosts.receiver, record, spans)
    assert {n: len(chains[n]) for n in seqs} == dict.fromkeys(seqs, 1)
    for n, seq in seqs.items():
        trace = trace_of(chains[n][0], spans)
        if n in chosen:
            assert len(trace) == 3, (n, trace)
        else:
            assert len(trace) == 4 and begins(trace)["id"] == chains[n][0]["parent"], (n, trace)
        assert chains[n][0]["parent"] == \
            message_span(hosts.link.addrA, port, hosts.link.addrB, hosts.receiver.port, seq), (n, seq)
    return {int(o["value"]) for o in lines if o["seen"] == "both"}


def test_same_port_again(hosts, log):
    """Two connections with the same four-tuple. The sequence numbers of the later one are chosen by the kernel, or
    lower."""
    port, seqs = 47001, {}
    for first in (None, None, 3000000000, 2999999000):
        seqs |= hosts.put("REUSED", range(len(seqs) + 1, len(seqs) + 5), port, first)
    assert len(set(seqs.values())) == len(seqs)
    check_messages(hosts, log, "REUSED", port, seqs, list(seqs)[8:])


def test_sequence_numbers_pass_2_32(hosts, log):
    """Puts seen in the IOC and in packets join by the sequence number, also when it passes 2**32."""
    seqs = hosts.put("WRAPPED", range(1, 31), 47002, (1 << 32) - 500)
    assert seqs[1] > 1 << 31 and seqs[30] < 1000, seqs
    both = check_messages(hosts, log, "WRAPPED", 47002, seqs, seqs)
    assert len([n for n in both if seqs[n] > 1 << 31]) > 2 and len([n for n in both if seqs[n] < 1 << 31]) > 2, both
