# SPDX-License-Identifier: BSD-3-Clause
"""The web page (ebpfMonApp/op/web): compares its PVs with the database, and loads the page in headless Chromium. A
replacement of PVWS sends it the values of a real monitor."""
import re

import pytest
from tests.harness import browser, ca, db, paths
from tests.harness.pvws import Pvws, update
from tests.harness.wait import until

PAGE = paths.TOP / "ebpfMonApp" / "op" / "web" / "ebpfMon.html"


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(db.READY + db.chain("C", 3)).start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc):
    m = module_monitor().start()
    m.wait_ioc(ioc)
    ioc.put("C0.PROC", 1)
    m.wait("CHAIN_HIST", lambda chains: sum(chains) > 0)
    until(lambda: ioc.prefix + "C0" in m.lines("PUT_LOG"), 60, lambda: m.lines("PUT_LOG"))
    return m


def asked():
    """The PVs in the page."""
    script = PAGE.read_text()
    return {n for names in re.findall(r"const (?:TILES|TEXTS|PLOTS|COLOURS) = (.*?);", script, re.S)
            for n in re.findall(r"\b([A-Z][A-Z0-9_]{2,}(?:\.VAL\$)?)", re.sub(r', "[^"]*"\]', "]", names))}


def test_pvs_exist():
    text = "".join((paths.DB / db).read_text() for db in ("ebpfMon.db", *paths.MODULE_DBS))
    kinds = {name: kind for kind, name in re.findall(r'^record\((\w+), "\$\(P\)(\w+)"\)', text, re.M)}
    names = asked()
    assert len(names) > 20
    for name in names:
        pv = name.removesuffix(".VAL$")
        assert pv in kinds and name.endswith("$") == (kinds[pv] in ("lsi", "lso")), name


def test_it_needs_nothing_else():
    """The page is one file without scripts, fonts or pictures of another server, and it writes nothing."""
    text = PAGE.read_text()
    assert not re.search(r"\b(src|href)=|@import|url\(|\"write\"", text)
    assert "default-src 'none'" in text


@pytest.fixture
def pvws():
    server = Pvws()
    yield server
    server.close()


@pytest.fixture
def page(pvws, tmp_path):
    if why := browser.missing():
        pytest.skip(why)
    opened = []

    def make(prefix):
        opened.append(browser.Page(f"{PAGE.as_uri()}?P={prefix}&pvws={pvws.url}", tmp_path))
        return opened[-1]

    yield make
    for p in opened:
        p.close()


def values_of(monitor):
    """The messages of PVWS about a monitor: severities, units, precision and values as read by Channel Access."""
    said = {}
    for name in [*asked(), "STATE", "STATE_MSG.VAL$"]:
        channel = ca.pv(monitor.prefix + name)
        more, chars = {}, "char" in channel.type
        value = channel.get(use_monitor=False, as_string=chars, **({"count": 0} if chars else {}))
        if "enum" in channel.type:
            more = {"text": channel.enum_strs[value], "labels": list(channel.enum_strs)}
        elif chars:
            value = value.encode("latin-1")  # pyepics has decoded the text so
        elif channel.count > 1:
            value = [float(v) for v in value]
        else:
            more = {"units": channel.units, "precision": channel.precision or 0}
        said["ca://" + monitor.prefix + name] = update("ca://" + monitor.prefix + name, value, channel.severity or 0, **more)
    return said


def text(page, name):
    return page.ask(f'document.getElementById("{name}").textContent')


def test_page_shows_the_monitor(monitor, ioc, pvws, page):
    pvws.values = values_of(monitor)
    shown = page(monitor.prefix)
    until(lambda: "Running" in text(shown, "state") and text(shown, "IOC_CNT"), 60, lambda: str(shown.complaints))
    assert text(shown, "prefix") == monitor.prefix
    count = pvws.values[f"ca://{monitor.prefix}IOC_CNT"]["value"]  # a value of the whole host, which may have changed
    assert text(shown, "IOC_CNT") == f"IOCs{count} IOCs"
    assert ioc.prefix + "C0" in text(shown, "PUT_LOG")
    assert text(shown, "PUT_LAST.VAL$") == monitor.text("PUT_LAST")
    assert text(shown, "LOG_STATE") == "LogsOff"
    for plot in ("CHAIN_HIST", "CHAIN_HEAT"):  # the chart is not empty
        cells = f'document.getElementById("{plot}")'
        assert shown.ask(f'new Set({cells}.getContext("2d").getImageData(0, 0, {cells}.width, {cells}.height).data).size') > 2 or \
            plot == "CHAIN_HEAT"
    # later updates have only the changed properties
    name = "ca://" + monitor.prefix
    pvws.send({"type": "update", "pv": name + "COST", "value": 7.5, "severity": "MINOR", "seconds": 2, "nanos": 0})
    pvws.send({"type": "update", "pv": name + "CPU", "value": "NaN", "severity": "INVALID", "seconds": 2, "nanos": 0})
    until(lambda: "MINOR" in shown.ask('document.getElementById("COST").className') and "not known" in text(shown, "CPU"), 60,
          lambda: text(shown, "COST"))
    assert re.search(r"7\.50* %", text(shown, "COST"))
    pvws.send({"type": "update", "pv": name + "PUT_BAD_OPEN_CNT", "value": 1, "severity": "MAJOR", "seconds": 2, "nanos": 0})
    until(lambda: shown.ask('document.getElementById("PUT_BAD_LOG").className') == "MAJOR", 60, "the text has the colour")
    # hostile text stays text
    pvws.send(update(name + "PUT_LOG", b"one <img src=x onerror=alert(1)>\ntwo\n\0rest"))
    until(lambda: "two" in text(shown, "PUT_LOG"), 60, "the new text")
    assert text(shown, "PUT_LOG") == "one <img src=x onerror=alert(1)>\ntwo\n"
    shown.ask('{ const w = document.getElementById("wanted"); w.value = "two"; w.oninput(); }')
    assert text(shown, "PUT_LOG") == "two"
    wide = shown.ask("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1], "nothing scrolls sideways"
    assert not shown.complaints


def test_page_says_that_it_is_old(monitor, pvws, page):
    pvws.values = {f"ca://M:{n}": update(f"ca://M:{n}", 3.0) for n in ("IOC_CNT",)}
    shown = page("M:")
    until(lambda: "3" in text(shown, "IOC_CNT"), 60, lambda: str(shown.complaints))
    assert text(shown, "link") == ""
    pvws.socket.close()
    until(lambda: "what you see is old" in text(shown, "link"), 60, "the page knows")
    assert "3" in text(shown, "IOC_CNT")
    until(lambda: text(shown, "link") == "" and len([m for m in pvws.asked if m["type"] == "subscribe"]) == 2, 60, "it is back")


def test_page_asks_for_the_prefix(pvws, page):
    shown = page("")
    until(lambda: shown.ask('document.getElementById("ask").hidden') is False, 60, "the form")
    assert not pvws.asked
