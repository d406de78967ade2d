# SPDX-License-Identifier: BSD-3-Clause
"""Channel Access by pyepics: the client calls that the tests need."""
import ctypes
import struct
import subprocess
import time

from . import loopback, paths, rawca
from .wait import patient, until


def write(port, name, payload, dtype, count=1, callback=False):
    """Writes bytes as the client tester@testhost. This client ignores the access rights that the server sends."""
    client = rawca.RawCa(port, "tester", "testhost")
    client.put_bytes(name, payload, dtype, count, callback)
    client.close()


def raw_put(ioc, pv, value, callback):
    """Puts a number as that client."""
    write(ioc.port, pv, struct.pack(">d", value), rawca.DOUBLE, callback=callback)


def _epics():
    import epics  # only after loopback.use()
    # pyepics waits for an answer in steps of 10 us, which take much CPU time. With steps of a millisecond, an answer is late
    # by one at most.
    epics.ca.poll.__wrapped__.__defaults__ = (0.001, 1.0)
    return epics


TIMEOUT = patient(15)
_channels = {}  # name → channel, of all that this process has opened
TYPE_UNKNOWN = -1  # TYPENOTCONN of cadef.h


def _set_type(channel, ftype):
    """As PV.__on_connect of pyepics does it."""
    name = _epics().dbr.Name(ftype).lower()
    channel.ftype = ftype
    channel._args.update(type=name, typefull=name, ftype=_epics().dbr.Name(name, reverse=True))


def pvs(names, timeout=TIMEOUT, auto_monitor=False):
    """Channels, all connected at the same time. The defaults of pyepics are not used: it would subscribe to each
    channel, so all updates of fast records would come, and it would call libca in a loop without a pause until the
    channel is connected."""
    epics = _epics()
    names, context = list(names), epics.ca.current_context()
    known = {} if auto_monitor else {n: c for n in names if (c := _channels.get(n)) and c.context == context}
    channels = [known.get(name) or epics.get_pv(name, auto_monitor=auto_monitor) for name in names]
    _channels.update(zip(names, channels))
    epics.ca.flush_io()
    end, pause = time.monotonic() + timeout, 0.001
    while lost := [c.pvname for c in channels if not c.connected]:
        assert time.monotonic() < end, f"cannot connect to {lost[:5]} and {max(0, len(lost) - 5)} more"
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    for channel in channels:
        # On a busy machine pyepics may ask for the type before libca knows it. Then it keeps the type -1, and the name
        # "unknown", for ever.
        if channel.ftype == TYPE_UNKNOWN + epics.dbr.TIME_STRING:
            until(lambda c=channel: epics.ca.field_type(c.chid) != TYPE_UNKNOWN, 5, f"the type of {channel.pvname}")
            _set_type(channel, epics.ca.promote_type(channel.chid, use_time=True))
    return channels


def forget(prefix=""):
    """Closes the channels to the PVs of a server that has ended; of all, if no prefix is given. Otherwise this process would
    search for them until it ends: each search is a packet for each port of loopback.py, and the monitors of this process read
    them all."""
    for name in [n for n in _channels if n.startswith(prefix)]:
        channel = _channels.pop(name)
        ca = _epics().ca
        if channel.context == ca.current_context():
            channel.disconnect()
            ca.clear_channel(channel.chid)


def pv(name, timeout=TIMEOUT):
    channel, = pvs([name], timeout)
    return channel


def subscribed(name, timeout=TIMEOUT):
    """A channel that is subscribed, so its callbacks get updates. Do not set auto_monitor of a channel that has just connected: a
    thread of libca subscribes it in that moment. If two threads do, pyepics 3.5 keeps only one of the two callbacks, the other one
    is freed memory, and the next update ends this process (PV._check_auto_monitor)."""
    channel, = pvs([name], timeout, auto_monitor=True)
    return channel


def get(name, timeout=TIMEOUT, **how):
    how.setdefault("use_monitor", False)
    value = pv(name, timeout).get(timeout=timeout, **how)
    assert value is not None, f"no value of {name}"
    return value


def time_stamp(name):
    """The time stamp of a PV, in seconds since 1970."""
    return pv(name).get_timevars(timeout=TIMEOUT)["timestamp"]


def utf8(text):
    """Corrects a text that pyepics decoded as Latin-1."""
    return text.rstrip("\0").encode("latin-1", "replace").decode("utf-8", "replace")


def get_chars(name, timeout=TIMEOUT):
    """The text of an array of characters. PV.get() of pyepics would make it character by character."""
    # count=0: all characters; without it pyepics requests as many as it got the last time
    value = _epics().ca.get(pv(name, timeout).chid, count=0, timeout=timeout)
    assert value is not None, f"no value of {name}"
    return bytes([value] if isinstance(value, int) else value).partition(b"\0")[0].decode("utf-8", "replace").rstrip()


def get_text(name, timeout=TIMEOUT):
    """A long string: of a char waveform or of an lsi record."""
    return get_chars(name if name.endswith("$") else f"{name}.VAL$", timeout)


def get_many(names, timeout=2 * TIMEOUT):
    """name → value; all are read at the same time."""
    ca = _epics().ca
    names = list(names)
    chids = [channel.chid for channel in pvs(names, timeout)]
    for chid in chids:
        ca.get(chid, wait=False)
    ca.flush_io()
    values = [ca.get_complete(chid, timeout=timeout) for chid in chids]
    missing = [n for n, v in zip(names, values) if v is None]
    assert not missing, f"no value of {missing[:5]} and {max(0, len(missing) - 5)} more"
    return dict(zip(names, values))


def get_integers(names, timeout=2 * TIMEOUT):
    """The same for PVs with a number, by libca itself: pyepics takes 0.4 ms for each."""
    ca, dbr = _epics().ca, _epics().dbr
    names = list(names)
    values = (ctypes.c_double * len(names))()
    for i, channel in enumerate(pvs(names, timeout)):
        status = ca.libca.ca_array_get(ctypes.c_long(dbr.DOUBLE), ctypes.c_ulong(1), channel.chid, ctypes.byref(values, 8 * i))
        assert status == dbr.ECA_NORMAL, (channel.pvname, status)
    status = ca.libca.ca_pend_io(ctypes.c_double(timeout))
    assert status == dbr.ECA_NORMAL, f"status {status} instead of the values of {names[:5]} and more"
    return dict(zip(names, map(int, values)))


def put(name, value, wait=True, timeout=2 * TIMEOUT):
    done = pv(name).put(value, wait=wait, timeout=timeout)
    assert done is not None and done >= 0, f"the put to {name} failed: {done}"


def connected(name, timeout=60):
    channel = _channels[name] = _epics().get_pv(name)
    until(lambda: channel.connected, timeout, f"a connection to {name}")
    return channel


def run(program, *args, port, **kw):
    """Runs a client program of Base with one server. Returns the completed process."""
    return subprocess.run([str(paths.BASE_BIN / program), *map(str, args)], env=loopback.client(port), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=patient(30),
                          stdin=subprocess.DEVNULL, **kw)
