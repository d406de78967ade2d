# SPDX-License-Identifier: BSD-3-Clause
"""A server made with another project's library: peer_ioc.py KIND [ADDRESS] PREFIX. KIND: caproto, pcaspy, softioc, p4p.

Each has a scalar PV (STRING, SHORT, …) and an array PV (ASTRING, …) for each type that its library knows. All but p4p
have READY. If the library can do it, there are also RO (not writable) and BAD (each write fails). p4p also has TABLE
and STRUCT. The server ends when its stdin ends.
"""
import os
import sys
import threading

NELM = 100000
STATES = ["Idle", "Moving", "Stopped"]
kind, address, prefix = sys.argv[1], (sys.argv[2:-1] or ["127.0.0.1"])[0], sys.argv[-1]


def end():
    sys.stdin.read()
    os._exit(0)


def caproto():
    from caproto import (AccessRights, ChannelByte, ChannelDouble, ChannelEnum, ChannelFloat, ChannelInteger,
                         ChannelShort, ChannelString)
    from caproto.server import run

    class ReadOnly(ChannelDouble):
        def check_access(self, host, user):
            return AccessRights.READ

    class Bad(ChannelDouble):
        async def verify_value(self, data):
            raise ValueError("no such value")

    types = {"STRING": (ChannelString, "", [""]), "SHORT": (ChannelShort, 0, [0]), "FLOAT": (ChannelFloat, 0., [0.]),
             "LONG": (ChannelInteger, 0, [0]), "DOUBLE": (ChannelDouble, 0., [0.]), "CHAR": (ChannelByte, b"\0", b"\0")}
    db = {"READY": ChannelInteger(value=1), "ENUM": ChannelEnum(value="Idle", enum_strings=STATES),
          "RO": ReadOnly(value=0.), "BAD": Bad(value=0.)}
    for name, (make, one, many) in types.items():
        db[name] = make(value=one, max_length=1)
        db["A" + name] = make(value=many, max_length=NELM)
    run({prefix + name: channel for name, channel in db.items()}, interfaces=[address], log_pv_names=False)


def pcaspy():
    os.environ["EPICS_CA_MAX_ARRAY_BYTES"] = str(16 * NELM)
    from pcaspy import Driver, SimpleServer

    types = {"STRING": "string", "SHORT": "short", "FLOAT": "float", "LONG": "int", "DOUBLE": "float",
             "CHAR": "char"}
    db = {name: {"type": t} for name, t in types.items() if name != "CHAR"}  # a put to a CHAR breaks the connection
    db.update({"A" + name: {"type": t, "count": NELM if name == "DOUBLE" else 1000} for name, t in types.items()
               if name != "STRING"})
    db.update({"READY": {"type": "int"}, "ENUM": {"type": "enum", "enums": STATES},
               "RO": {"type": "float", "asg": "RO"}})
    server = SimpleServer()
    with open("pcaspy.acf", "w") as f:
        f.write("ASG(DEFAULT) { RULE(1, WRITE) }\nASG(RO) { RULE(1, READ) }\n")
    server.initAccessSecurityFile("pcaspy.acf")
    server.createPV(prefix, db)
    driver = Driver()
    while driver:
        server.process(0.01)


def softioc():
    import numpy
    from softioc import asyncio_dispatcher, builder
    from softioc import softioc as ioc

    builder.SetDeviceName(prefix.rstrip(":"))
    builder.aOut("READY", initial_value=1)
    builder.aOut("DOUBLE")
    builder.longOut("LONG")
    builder.stringOut("STRING")
    builder.mbbOut("ENUM", *STATES)
    for name, t in {"SHORT": "i2", "FLOAT": "f4", "CHAR": "u1", "LONG": "i4", "DOUBLE": "f8"}.items():
        if name in ("SHORT", "FLOAT", "CHAR"):
            builder.WaveformOut(name, numpy.zeros(1, t))
        builder.WaveformOut("A" + name, length=NELM, datatype=t)  # empty, because some clients read before they write
    builder.LoadDatabase()
    ioc.iocInit(asyncio_dispatcher.AsyncioDispatcher())


def p4p():
    from p4p import Type
    from p4p.nt import NTEnum, NTScalar, NTTable
    from p4p.server import Server, StaticProvider
    from p4p.server.thread import SharedPV

    provider = StaticProvider("peer")
    kept = []

    def add(name, **how):
        pv = SharedPV(**how)

        @pv.put
        def on_put(pv, op):
            if name == "BAD":
                op.done(error="no such value")
                return
            pv.post(op.value())
            op.done()

        @pv.rpc
        def on_call(pv, op):
            if name == "BAD":
                op.done(error="no such call")
            else:
                op.done(op.value())

        provider.add(prefix + name, pv)
        kept.append(pv)

    for name, code in {"BOOL": "?", "BYTE": "b", "SHORT": "h", "LONG": "i", "INT64": "l", "UINT64": "L",
                       "FLOAT": "f", "DOUBLE": "d", "STRING": "s", "BAD": "d"}.items():
        add(name, nt=NTScalar(code), initial=False if code == "?" else "" if code == "s" else 0)
        add("A" + name, nt=NTScalar("a" + code), initial=[])
    add("ENUM", nt=NTEnum(), initial={"index": 0, "choices": STATES})
    add("TABLE", nt=NTTable([("a", "i"), ("b", "s")]), initial=[{"a": 1, "b": "x"}])
    struct = Type([("x", "d"), ("deep", ("S", None, [("n", "i"), ("s", "s")]))])
    add("STRUCT", initial=struct({"x": 1.0, "deep": {"n": 1, "s": "a"}}))
    with Server(providers=[provider]):
        print("ready", flush=True)
        threading.Event().wait()


threading.Thread(target=end, daemon=True).start()
{"caproto": caproto, "pcaspy": pcaspy, "softioc": softioc, "p4p": p4p}[kind]()
threading.Event().wait()
