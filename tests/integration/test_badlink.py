# SPDX-License-Identifier: BSD-3-Clause
"""The link of harness/badlink.py loses, repeats and reorders frames. TCP works over this link."""
import hashlib
import os
import subprocess
import sys

import pytest

from tests.harness import badlink

SIZE = 1 << 20

SERVER = """
import hashlib, socket, sys
listener = socket.create_server((sys.argv[1], 0))
print(listener.getsockname()[1], flush=True)
connection, peer = listener.accept()
connection.settimeout(60)
digest, size = hashlib.sha256(), 0
while data := connection.recv(65536):
    digest.update(data)
    size += len(data)
print(size, digest.hexdigest(), *peer, flush=True)
"""

CLIENT = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 60) as connection:
    print(*connection.getsockname(), flush=True)
    connection.sendall(sys.stdin.buffer.read())
"""


def transfer(link, to=None):
    """Sends SIZE random bytes from a to b and compares them. Returns the client's address as each end sees it."""
    data = os.urandom(SIZE)
    server = link.run_in(link.b, [sys.executable, "-c", SERVER, link.addrB], stdout=subprocess.PIPE, text=True)
    port = server.stdout.readline().strip()
    client = link.run_in(link.a, [sys.executable, "-c", CLIENT, to or link.addrB, port], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
    own = client.communicate(data, timeout=90)[0].decode().split()
    size, digest, *seen = server.communicate(timeout=90)[0].split()
    assert (int(size), digest) == (SIZE, hashlib.sha256(data).hexdigest())
    return own, seen


def test_bad():
    with badlink.BadLink(loss=0.02, reorder=0.1, dup=0.01, seed=1) as link:
        transfer(link)
        counts = link.counts()
    assert counts["forwarded"] > SIZE / 1500, "frames as on a cable"
    assert counts["dropped"] > 0 and counts["reordered"] > 0 and counts["duplicated"] > 0, counts


def test_good():
    with badlink.BadLink() as link:
        transfer(link)
        counts = link.counts()
    assert counts["dropped"] == counts["reordered"] == counts["duplicated"] == 0, counts


@pytest.mark.parametrize("way", ["nat", "moved"])
def test_translated(way):
    with badlink.BadLink(nat=True) as link:
        own, seen = transfer(link, getattr(link, way + "B"))
        assert link.counts()["translated"] > SIZE / 1500
        assert own[0] == link.addrA and seen[0] == getattr(link, way + "A") and own[1] != seen[1], (own, seen)
        own, seen = transfer(link)
        assert own == seen and own[0] == link.addrA, "only the translator's addresses are translated"


def test_end_removes_all():
    with badlink.BadLink() as link:
        names = {link.a, link.b, link.middle}
        assert names <= set(os.listdir(badlink.RUN))
        left = link.run_in(link.a, ["sleep", "1000"])
    assert left.returncode is not None
    assert not names & set(os.listdir(badlink.RUN))


def test_failed_start_removes_all():
    with pytest.raises(RuntimeError, match=" mtu "), badlink.BadLink(mtu=1):
        pass
    assert not [n for n in os.listdir(badlink.RUN) if f"{badlink.PREFIX}-{os.getpid()}-" in n]
