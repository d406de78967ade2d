# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts of which one has no monitor, or none yet, or none for a while: what is told is well-formed and right."""
import pytest
from tests.harness.hosts import Hosts

PUTS = 6


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with Hosts(tmp_path_factory.mktemp("hosts")) as made:
        made.start_receiver("DIRECT", "TRANSLATED")
        yield made


@pytest.fixture(scope="module")
def direct(hosts):
    return hosts.start_sender("DIRECT", hosts.link.addrB)


@pytest.fixture(scope="module")
def translated(hosts):
    return hosts.start_sender("TRANSLATED", hosts.link.natB)


def test_sender_alone(hosts, direct, new_monitor):
    hosts.start_monitor(new_monitor, "A")
    hosts.check_sender_alone(direct, hosts.send(direct, PUTS))


def test_receiver_alone(hosts, direct, translated, new_monitor):
    """Of a process that it knows, B's monitor tells of the message itself; of a stranger it cannot."""
    hosts.start_monitor(new_monitor, "B")
    hosts.check_receiver_alone(direct, hosts.send(direct, PUTS))
    hosts.check_receiver_of_a_stranger(translated, hosts.send(translated, PUTS), hosts.link.natA)


def test_receiver_later(hosts, direct, new_monitor):
    """The connection is older than B's monitor: from its first put on they join."""
    hosts.start_monitor(new_monitor, "A")
    before = hosts.send(direct, PUTS)
    hosts.start_monitor(new_monitor, "B")
    after = hosts.send(direct, PUTS)
    hosts.check_joined(direct, after)
    hosts.check_sender_alone(direct, before)


def test_sender_killed(hosts, direct, new_monitor):
    """Its next life has other ids for its chains, and the same ones for messages."""
    first = hosts.start_monitor(new_monitor, "A")
    hosts.start_monitor(new_monitor, "B")
    before = hosts.send(direct, PUTS)
    hosts.check_joined(direct, before)
    first.process.kill()
    without = hosts.send(direct, PUTS)
    hosts.check_receiver_alone(direct, without)
    hosts.start_monitor(new_monitor, "A")
    after = hosts.send(direct, PUTS)
    hosts.check_joined(direct, after)
    hosts.check_joined(direct, before)
