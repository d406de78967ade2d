# SPDX-License-Identifier: BSD-3-Clause
"""Groups of pvAccess, of QSRV 1 and 2: each member that is written is a put that names the group. If the server refuses a member, that
is one more line, with the group, and it counts as denied."""
import itertools

import pytest
from tests.harness import db, loopback, paths
from tests.harness.putlog import PutLog
from tests.harness.wait import until

MEMBERS = {"RO": ({}, {"ASG": "DENIED"}), "DIS": ({}, {"DISP": "1"}), "ALL": ({}, {}), "NONE": ({"ASG": "DENIED"}, {"ASG": "DENIED"})}
VALUES = itertools.count(1)


def record(group, member, order, fields):
    text = "".join(f'field({k}, "{v}") ' for k, v in fields.items())
    return f'record(ao, "$(P){group}{member}") {{ {text}info(Q:group, {{"$(P){group}": {{"{member.lower()}": ' \
           f'{{+channel: "VAL", +type: "plain", +putorder: {order}}}}}}}) }}\n'


DB = db.READY + "".join(record(group, member, i + 1, fields) for group, both in MEMBERS.items()
                        for i, (member, fields) in enumerate(zip("AB", both))) + \
    'record(ao, "$(P)OWN") { field(DISP, "1") alias("$(P)ALIAS") }\n'


@pytest.fixture(scope="module", params=["softIocPVA", "pvxs"])
def ioc(request, module_ioc):
    return module_ioc(DB, kind=request.param, acf=paths.TESTS / "ioc" / "roads.acf").start()


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return PutLog(tmp_path_factory.mktemp("log") / "puts.json")


@pytest.fixture(scope="module")
def monitor(module_monitor, log):
    return module_monitor(before=[log.command()]).start()


@pytest.mark.parametrize("group, atomic, written, result, said", [
    ("RO", True, "A", "denied", "not permitted"),
    ("RO", False, "A", "denied", "not permitted"),
    ("DIS", True, "A", "failed", ""),
    ("NONE", True, "", "denied", "not permitted"),
    ("ALL", True, "AB", None, None),
])
def test_refused_member(monitor, log, ioc, group, atomic, written, result, said):
    monitor.wait_ioc(ioc)
    value, denied, before = next(VALUES), monitor.get("PUT_DENIED_CNT"), len(log.of(ioc.prefix))
    with loopback.pva_context(ioc.port, nt=False) as context:
        try:
            context.put(ioc.prefix + group, {"a": value, "b": value}, request=f"record[atomic={str(atomic).lower()}]", timeout=30)
            answer = "ok"
        except Exception as e:  # noqa: BLE001: p4p has several
            answer = str(e)
        written_now = [m for m in "AB" if context.get(f"{ioc.prefix}{group}{m}", timeout=30).value == value]
    if group == "DIS" and ioc.kind == "pvxs":
        written = ""  # QSRV 2 looks at DISP of all members before it writes the first one
    assert written_now == list(written) and (answer == "ok") == (result is None), (written_now, answer)
    lines = log.next(len(written) + (result is not None), ioc.prefix, before)
    members = {o["pv"]: o for o in lines if o["seen"] != "wire"}
    assert set(members) == {f"{ioc.prefix}{group}{m}" for m in written}, lines
    assert all(o["group"] == ioc.prefix + group and o["result"] == "ok" for o in members.values()), lines
    refused = [o for o in lines if o["seen"] == "wire"]
    assert [(o["pv"], o["result"], o.get("partly", False)) for o in refused] == \
        ([(ioc.prefix + group, result, bool(written))] if result else []), lines
    assert all(said in o["message"] and str(value) in o["value"] for o in refused), lines
    until(lambda: monitor.get("PUT_DENIED_CNT") == denied + (result == "denied"), 5, lambda: f"{denied}: {monitor.get('PUT_DENIED_CNT')}")
    if result and written:
        until(lambda: "and made other members" in monitor.lines("PUT_LOG"), 10, lambda: monitor.lines("PUT_LOG"))
    if written:
        until(lambda: f", group {ioc.prefix}{group}" in monitor.lines("PUT_LOG"), 10, lambda: monitor.lines("PUT_LOG"))


def test_refused_alias(monitor, log, ioc):
    """Only packets show it: it has the record's own name all the same, as if the record had made it."""
    monitor.wait_ioc(ioc)
    before = len(log.of(ioc.prefix + "OWN"))
    with loopback.pva_context(ioc.port, nt=False) as context:
        try:
            context.put(ioc.prefix + "ALIAS.DESC", "x", timeout=30)
        except Exception:  # noqa: BLE001: p4p has several; QSRV 1 answers that all is well
            pass
    line, = log.next(1, ioc.prefix + "OWN", before)
    assert (line["pv"], line["channel"], line["seen"]) == (ioc.prefix + "OWN.DESC", ioc.prefix + "ALIAS.DESC", "wire"), line
    assert line["result"] in ("failed", "unwritten"), line
