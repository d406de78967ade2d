# SPDX-License-Identifier: BSD-3-Clause
"""Real Channel Access clients. Each sends a value in the type that the test wants."""
import ctypes
import getpass
import os
import subprocess

from . import loopback, paths
from .rawca import CHAR, DOUBLE, ENUM, ERROR, FLOAT, FORMAT, LONG, SHORT, STRING, RawCa, elements
from .wait import patient, until

NAMES = ["STRING", "SHORT", "FLOAT", "ENUM", "CHAR", "LONG", "DOUBLE"]
__all__ = ["CHAR", "DOUBLE", "ENUM", "FLOAT", "LONG", "NAMES", "SHORT", "STRING", "Caproto", "Libca", "Raw", "caput",
           "on_the_wire"]


def on_the_wire(base, values, whole_strings):
    """The bytes that were sent. A single string may be shorter than 40 bytes in a packet."""
    data = elements(base, values)
    if base == STRING and len(values) == 1 and not whole_strings:
        n = len(values[0].encode()) + 1
        data = data[:n + -n % 8]
    return data


class Libca:
    """Base's client library, as pyepics loads it."""
    user, host, whole_strings = getpass.getuser(), paths.HOST, False

    def __init__(self):
        import epics
        self.ca = epics.ca
        self._channels = {}

    def channel(self, name):
        if name not in self._channels:
            chid = self.ca.create_channel(name, connect=True)
            assert self.ca.connect_channel(chid, timeout=patient(10)), name
            self._channels[name] = chid
        return self._channels[name]

    def put(self, ioc, record, base, values, notify):
        chid = self.channel(ioc.prefix + record)
        if base == STRING:
            data = ctypes.create_string_buffer(elements(STRING, values), 40 * len(values))
        else:
            data = (dict(zip("hfHBid", (ctypes.c_short, ctypes.c_float, ctypes.c_ushort, ctypes.c_ubyte, ctypes.c_int,
                                        ctypes.c_double)))[FORMAT[base]] * len(values))(*values)
        lib = self.ca.libca
        if notify:
            done = []
            callback = ctypes.CFUNCTYPE(None, self.ca.dbr.event_handler_args)(lambda args: done.append(args.status))
            status = lib.ca_array_put_callback(base, len(values), chid, data, callback, None)
            assert status == 1, status
            self.ca.flush_io()
            until(lambda: self.ca.poll() and done, 10, "the callback")
        else:
            assert lib.ca_array_put(base, len(values), chid, data) == 1
            self.ca.flush_io()

    def close(self):
        for chid in self._channels.values():
            self.ca.clear_channel(chid)


class Caproto:
    """caproto's threading client."""
    user, host, whole_strings = getpass.getuser(), paths.HOST, True

    def __init__(self):
        from caproto.threading.client import Context
        self.context = Context()
        self._pvs = {}

    def put(self, ioc, record, base, values, notify):
        from caproto import ChannelType
        name = ioc.prefix + record
        if name not in self._pvs:
            self._pvs[name], = self.context.get_pvs(name)
            self._pvs[name].wait_for_connection(timeout=patient(10))
        values = [v.encode() for v in values] if base == STRING else values
        self._pvs[name].write(values, notify=notify, wait=notify, timeout=patient(10), data_type=ChannelType(base))

    def close(self):
        self.context.disconnect()


class Raw:
    """The client of rawca.py."""
    user, host, whole_strings = "raw", "rawhost", True

    def __init__(self):
        self._circuits = {}

    def put(self, ioc, record, base, values, notify):
        if ioc.port not in self._circuits:
            self._circuits[ioc.port] = RawCa(ioc.port, self.user, self.host)
        return self._circuits[ioc.port].put(ioc.prefix + record, base, values, notify)

    def wait_error(self, ioc):
        self._circuits[ioc.port].until(ERROR)

    def close(self):
        for circuit in self._circuits.values():
            circuit.close()


def caput(ioc, *args):
    """Runs caput of Base. Returns its pid."""
    with subprocess.Popen([paths.BASE_BIN / "caput", *map(str, args)], env=loopback.client(ioc.port),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as p:
        out, _ = p.communicate(timeout=patient(20))
        assert p.returncode == 0, out
        return p.pid


assert os.environ.get("EPICS_CA_AUTO_ADDR_LIST") == "NO", "call loopback.use() first"
