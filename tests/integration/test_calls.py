# SPDX-License-Identifier: BSD-3-Clause
"""Calls (RPC) of pvAccess are in the put log and in the lists: who called what, with which arguments, and the result."""
import os

import pytest
from tests.harness import loopback, paths
from tests.harness.db import READY, record
from tests.harness.gateway import Gateway
from tests.harness.putlog import PutLog
from tests.harness.wait import until


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return PutLog(tmp_path_factory.mktemp("log") / "puts.json")


@pytest.fixture(scope="module")
def monitor(module_monitor, log):
    return module_monitor(before=[log.command()]).start()


@pytest.fixture(scope="module", params=["p4p", "pvxs"])
def server(request, module_ioc, monitor):
    if request.param != "p4p":
        made = module_ioc(READY + record("ao", "DOUBLE"), kind=request.param).start()
        monitor.wait_ioc(made)
        return made
    made = module_ioc(kind="pythonSoftIOC", files=[paths.PROGRAMS / "peer_ioc.py", "p4p"]).start(wait=False)
    until(lambda: "ready" in made.process.lines or not made.running, 30, made.process.output)
    return made


def call(context, name, **arguments):
    """Returns the error, or None."""
    from p4p.nt import NTURI
    uri = NTURI([(k, "s" if isinstance(v, str) else "d") for k, v in arguments.items()])
    try:
        context.rpc(name, uri.wrap(name, kws=arguments, scheme="pva"), timeout=30)
    except Exception as e:  # noqa: BLE001: p4p has several
        return str(e)
    return None


def test_call(monitor, log, server):
    """A call is no put: what is put before, behind and at the same PV has its own line, with its old value."""
    peer, before = server.kind == "pythonSoftIOC", len(log.of(server.prefix))
    with loopback.pva_context(server.port, nt=False) as context:
        context.put(server.prefix + "DOUBLE", 1.5, timeout=30)
        refused = call(context, server.prefix + "DOUBLE", low=1.5, high="x" * 600)
        context.put(server.prefix + "DOUBLE", 2.5, timeout=30)
        if peer:
            assert call(context, server.prefix + "BAD", a="b") == "no such call"
    assert (refused is None) == peer, refused  # records have no calls
    lines = log.next(3 + peer, server.prefix, before, seconds=15)
    puts = [o for o in lines if not o["value"].startswith("call ")]
    assert [(o["pv"], o["value"], o["result"]) for o in puts] == [(server.prefix + "DOUBLE", v, "ok") for v in ("1.5", "2.5")], lines
    assert puts[1]["old"] == "1.5" and "group" not in puts[1] and (peer or {o["seen"] for o in puts} == {"both"}), puts
    made, *failed = [o for o in lines if o["value"].startswith("call ")]
    assert made["pv"] == server.prefix + "DOUBLE" and made["ioc"] == server.name and made["seen"] == "wire", made
    assert made["result"] == ("ok" if peer else "failed") and made.get("message", "") in (refused or "",), made
    assert '"low": 1.5' in made["value"] and made["value"].endswith("...") and len(made["value"]) < 600, made
    assert (made.get("after", "").startswith('{"scheme": "pva"') and 0 < float(made["duration"]) < 30) if peer else "after" not in made, made
    assert "old" not in made and made["peer"] == puts[0]["peer"] and made["pid"] == puts[0]["pid"], (made, puts)
    if peer:
        assert [(o["pv"], o["result"], o["message"]) for o in failed] == [(server.prefix + "BAD", "failed", "no such call")], failed
    until(lambda: f"{server.prefix}DOUBLE ? -> call {{" in monitor.lines("PUT_LOG"), 10, lambda: monitor.lines("PUT_LOG"))


def test_call_through_a_gateway(monitor, log, server, tmp_path):
    """It is one line, by the client behind the gateway."""
    if server.kind != "pythonSoftIOC":
        return  # it has no calls
    gateway = Gateway(tmp_path, server.port)
    try:
        with loopback.pva_context(gateway.port, nt=False) as context:
            before = len(log.of(server.prefix))
            for number in (1.5, 2.5):
                assert call(context, server.prefix + "DOUBLE", low=number) is None
            first, second = log.next(2, server.prefix, before, seconds=15)
        for line, number in ((first, 1.5), (second, 2.5)):
            assert f'"low": {number}' in line["value"] and line["ioc"] == server.name and line["result"] == "ok", line
            assert line["pid"] == str(os.getpid()) and line["gateway"] == f"pvagw[{gateway.pid}]" and "who_sure" not in line, line
    finally:
        gateway.discard()
