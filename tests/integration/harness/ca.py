# SPDX-License-Identifier: BSD-3-Clause
"""Channel Access: a probe that needs no library, and the few client calls that the tests are made of."""
import socket
import struct
import subprocess

from . import env
from .wait import until


def answers(port, name):
    """Whether a server at this port says that it has "name": one search datagram, one look for its reply."""
    payload = name.encode() + b"\0"
    payload += b"\0" * (-len(payload) % 8)
    version = struct.pack(">HHHHII", 0, 0, 0, 13, 0, 0)
    search = struct.pack(">HHHHII", 6, len(payload), 5, 13, 1, 1) + payload
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(0.1)
        s.connect(("127.0.0.1", port))
        try:
            s.send(version + search)
            reply = s.recv(2048)
        except OSError:  # nobody there yet, or no answer
            return False
    while len(reply) >= 16:
        command, size = struct.unpack(">HH", reply[:4])
        if command == 6:
            return True
        reply = reply[16 + size:]
    return False


def write(port, name, payload, dtype, count=1, callback=False):
    """A write request as it is, by a client tester@testhost that does not care for the rights it was told."""
    def message(command, payload=b"", dtype=0, count=0, p1=0, p2=0):
        payload += b"\0" * (-len(payload) % 8)
        return struct.pack(">HHHHII", command, len(payload), dtype, count, p1, p2) + payload

    with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
        s.sendall(message(0, count=13) + message(20, b"tester\0") + message(21, b"testhost\0") +
                  message(18, name.encode() + b"\0", p1=1, p2=13))
        data, sid = b"", None
        while sid is None:
            data += s.recv(4096)
            rest = data
            while len(rest) >= 16:
                command, size, _, _, p1, p2 = struct.unpack(">HHHHII", rest[:16])
                if len(rest) < 16 + size:
                    break
                if command == 18 and p1 == 1:
                    sid = p2
                rest = rest[16 + size:]
        s.sendall(message(19 if callback else 4, payload, dtype, count, p1=sid, p2=7))
        s.sendall(message(23))  # echo: the answer says that the write was dealt with
        s.recv(4096)


def _epics():
    import epics  # not before harness.env.setup()
    return epics


def pv(name, timeout=5):
    channel = _epics().get_pv(name, connect=True, timeout=timeout)
    assert channel.wait_for_connection(timeout), f"cannot connect to {name}"
    return channel


def get(name, timeout=5, **how):
    how.setdefault("use_monitor", False)
    value = pv(name, timeout).get(timeout=timeout, **how)
    assert value is not None, f"no value of {name}"
    return value


def utf8(text):
    """pyepics takes characters for Latin-1."""
    return text.rstrip("\0").encode("latin-1", "replace").decode("utf-8", "replace")


def get_text(name, timeout=5):
    """A long string, whatever carries it."""
    channel = name if name.endswith("$") else f"{name}.VAL$"
    # count=0: all there is; without it pyepics asks for as many characters as it got the last time
    value = pv(channel, timeout).get(timeout=timeout, as_string=True, use_monitor=False, count=0)
    assert value is not None, f"no value of {channel}"
    return utf8(value)


def get_many(names, timeout=10):
    values = _epics().caget_many(list(names), connection_timeout=timeout, timeout=timeout)
    missing = [n for n, v in zip(names, values) if v is None]
    assert not missing, f"no value of {missing[:5]} and {max(0, len(missing) - 5)} more"
    return dict(zip(names, values))


def put(name, value, wait=True, timeout=10):
    done = pv(name).put(value, wait=wait, timeout=timeout)
    assert done is not None and done >= 0, f"the put to {name} failed: {done}"


def connected(name, timeout=5):
    channel = _epics().get_pv(name)
    until(lambda: channel.connected, timeout, f"a connection to {name}")
    return channel


def run(program, *args, port, **kw):
    """Runs one of Base's client programs against one server; the completed process."""
    return subprocess.run([str(env.BASE_BIN / program), *map(str, args)], env=env.client_env(port), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30,
                          stdin=subprocess.DEVNULL, **kw)
