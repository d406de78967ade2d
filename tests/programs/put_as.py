# SPDX-License-Identifier: BSD-3-Clause
"""Makes puts as different users. Each line of its stdin is one put, a JSON list: KIND UID CLAIM PORT PV VALUE ADDRESS.
For each put it forks a child, which has its own process id and user. The libraries take long to load, so the parent
loads them once. It answers with one line, a JSON list: 0 and what the server said, or 1 and the error.

KIND: ca       a put without callback
      cacb     a put with callback
      mapped   as ca, by a socket of IPv6
      ack      acknowledges an alarm
      leave    as ca, and closes the connection at once
      libca    by EPICS' CA library
      pva      by PV Access
      pvatcp   the same without a search by UDP
      pvaquiet as pva; the put is not to process the record
      pvablock as pva, with callback

CLAIM is the user name that the client sends. libca and pva send the name of their own user. To claim "root" they run in
their own user namespace, as "unshare -Ur caput" does. PORT is the port of the CA server.
"""
import contextlib
import ctypes
import io
import json
import os
import signal
import socket
import struct
import sys
import traceback

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # because a process with several threads cannot make a user namespace
# The libraries are loaded as root, because the user may have no right to read them. The connection is made as the user.
from p4p.client.thread import Context, RemoteError  # noqa: E402

from tests.harness import rawca  # noqa: E402

CLONE_NEWUSER, PR_SET_DUMPABLE = 0x10000000, 4
SECONDS = 60  # for one put


def become_root_of_a_namespace(uid):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_DUMPABLE, 1)  # else root owns the files of /proc/self
    assert libc.unshare(CLONE_NEWUSER) == 0, os.strerror(ctypes.get_errno())
    with open("/proc/self/uid_map", "w", encoding="ascii") as f:
        f.write(f"0 {uid} 1")
    assert os.getuid() == 0


def put_by_pva(kind, port, name, value, address):
    server = f"[{address}]:{port + 1000}" if ":" in address else f"{address}:{port + 1000}"
    conf = {"EPICS_PVA_NAME_SERVERS": server, "EPICS_PVA_ADDR_LIST": ""} if kind == "pvatcp" else \
        {"EPICS_PVA_ADDR_LIST": f"{address}:{port + 2000}"}
    context = Context("pva", conf={**conf, "EPICS_PVA_AUTO_ADDR_LIST": "NO"}, useenv=False)
    try:
        how = {"pvaquiet": {"process": "false"}, "pvablock": {"wait": True}}.get(kind, {})
        context.put(name, value, timeout=10, **how)
        print("ok")
    except RemoteError as e:
        print("refused", e)
    context.close()


def put_by_libca(epics, name, value):
    pv = epics.PV(name, auto_monitor=False)
    assert pv.wait_for_connection(10)
    epics.ca.replace_printf_handler(lambda *a: None)
    print("writable" if pv.write_access else "read-only", pv.put(value, wait=True, timeout=10))


def put_by_raw_ca(kind, claim, port, name, value, address):
    connection = None
    if kind == "mapped":
        connection = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        connection.connect(("::ffff:" + address, port))
    client = rawca.RawCa(port, user=claim, addr=address, connection=connection)
    if kind == "leave":
        sid = client.sid(name)
        client.send(rawca.write(sid, rawca.STRING, [value]))
        print("sent")
    elif kind == "ack":
        client.put_bytes(name, struct.pack(">H", int(value)), 36)
        print("sent")
    else:
        status = client.put(name, rawca.STRING, [value], notify=kind == "cacb")
        print("ok" if status == 1 else f"refused {status}")
    client.close()


def put_as(kind, uid, claim, port, name, value, address):
    epics = None
    if kind == "libca":
        os.environ.update(EPICS_CA_ADDR_LIST=f"{address}:{port}")
        import epics
        import epics.ca

        library = epics.ca.find_libca()
        ctypes.CDLL(library)
        epics.ca.find_libca = lambda: library
    if uid:
        os.setgid(uid)
        os.setuid(uid)
    if kind == "libca" or (kind.startswith("pva") and claim == "root" and uid):
        become_root_of_a_namespace(uid)
    if kind.startswith("pva"):
        put_by_pva(kind, port, name, value, address)
    elif kind == "libca":
        put_by_libca(epics, name, value)
    else:
        put_by_raw_ca(kind, claim, port, name, value, address)


def run_child(request, answer):
    """Runs in the child: the answer is what put_as prints."""
    signal.alarm(SECONDS)
    said = io.StringIO()
    status = 0
    try:
        with contextlib.redirect_stdout(said):
            put_as(*request)
    except BaseException:  # noqa: BLE001: the test must see every error
        status = 1
        said.write(traceback.format_exc())
    os.write(answer, json.dumps([status, said.getvalue().strip()]).encode())
    os._exit(0)


def main():
    for line in sys.stdin:
        mine, its = os.pipe()
        child = os.fork()
        if child == 0:
            run_child(json.loads(line), its)
        os.close(its)
        with os.fdopen(mine, "rb") as answer:
            said = answer.read().decode()
        os.waitpid(child, 0)
        print(said or json.dumps([1, "the child ended"]), flush=True)


main()
