# SPDX-License-Identifier: BSD-3-Clause
"""A gateway of our own: proxy.py KIND UPSTREAM PV .... It serves these PVs, numbers, and makes each put that it gets to the PV of the
same name of the server at port UPSTREAM of 127.0.0.1. KIND: p4p (pvAccess; it makes the puts that have come when it gets a line on
stdin) or caproto (Channel Access, at once)."""
import os
import queue
import sys

kind, upstream, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]


def p4p():
    from p4p.client.thread import Context
    from p4p.nt import NTScalar
    from p4p.server import Server, StaticProvider
    from p4p.server.thread import SharedPV

    came = queue.Queue()
    provider = StaticProvider("proxy")
    kept = {}
    context = Context("pva", conf={"EPICS_PVA_ADDR_LIST": f"127.0.0.1:{upstream + 2000}", "EPICS_PVA_AUTO_ADDR_LIST": "NO"},
                      useenv=False)

    def add(name):
        kept[name] = SharedPV(nt=NTScalar("d"), initial=0)

        @kept[name].put
        def on_put(pv, op):
            came.put((name, op))
            os.write(1, b"came\n")  # whole, though several threads call

        provider.add(name, kept[name])

    for name in names:
        add(name)
        context.get(name, timeout=10)
    with Server(providers=[provider]):
        print("ready", flush=True)
        for _ in sys.stdin:
            while not came.empty():
                name, op = came.get()
                context.put(name, float(op.value()), timeout=10)
                op.done()


def caproto():
    os.environ["EPICS_CA_ADDR_LIST"] = f"127.0.0.1:{upstream}"
    import epics
    from caproto import ChannelDouble
    from caproto.server import run

    class Channel(ChannelDouble):
        async def verify_value(self, data):
            self.inner.put(float(data))
            epics.ca.poll()
            return data

    served = {}
    for name in names:
        served[name] = Channel(value=0.0)
        served[name].inner = epics.PV(name, auto_monitor=False)
        assert served[name].inner.wait_for_connection(10)
    run(served, interfaces=["127.0.0.1"], log_pv_names=False)


{"p4p": p4p, "caproto": caproto}[kind]()
