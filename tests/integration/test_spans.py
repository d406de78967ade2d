# SPDX-License-Identifier: BSD-3-Clause
"""Real receivers (rotel, Zipkin) understand the spans of a chain of ten records, which tests/bench/benchSpan.c makes."""
import re
import subprocess

import pytest
from tests.harness import paths, zipkin
from tests.harness.wait import until

BENCH_SPAN = paths.TESTS / "bench" / f"O.{paths.ARCH}" / "benchSpan"


def send(url, kind, rate=20, seconds=0.5):
    """Runs benchSpan. Returns the id of the last trace, and the numbers of spans that were made, accepted and lost."""
    out = subprocess.run([BENCH_SPAN, url, kind, str(rate), str(seconds)], capture_output=True, text=True, timeout=90)
    found = re.search(r"trace (\w+)\n(\d+) made, (\d+) accepted, (\d+) lost", out.stdout)
    assert found, out.stdout + out.stderr
    return found[1], *(int(n) for n in found.groups()[1:])


def test_a_chain_by_otlp(rotel):
    trace, made, accepted, lost = send(rotel.url, "otlp")
    assert made == accepted == 10 and lost == 0

    def spans():
        blocks = ["\n".join(b) for b in rotel.blocks("Span #")]
        return [b for b in blocks if re.search(rf"Trace ID +: {trace}", b)]

    until(lambda: len(spans()) == 10, 10, lambda: rotel.process.output())
    root = next(s for s in spans() if "Name           : process BENCH:CALC0" in s)
    own = re.search(r"^ +ID +: (\w{16})$", root, re.M)[1]
    assert "-> epics.record.name: Str(BENCH:CALC0)" in root and "-> epics.chain.records: Int(10)" in root
    assert all(re.search(rf"Parent ID +: {own}", s) for s in spans() if s != root)
    assert "     -> service.name: Str(benchIoc)" in rotel.process.lines
    assert "     -> process.pid: Int(4711)" in rotel.process.lines


def test_the_chain_is_an_exemplar_of_its_histogram(rotel):
    trace, *_ = send(rotel.url, "otlp")
    for name in "epics.root.latency", "epics.chain.latency":
        def points():
            return [b for b in rotel.blocks("Metric #")
                    if f"     -> Name: {name}" in b and f"     -> Trace ID: {trace}" in b]

        until(points, 10, lambda: str(rotel.metric(name)))
    assert "     -> epics.record.name: Str(BENCH:CALC0)" in rotel.metric("epics.root.latency")


def test_a_chain_by_zipkin(real_zipkin):
    if not real_zipkin:
        pytest.skip(zipkin.missing())
    trace, made, accepted, lost = send(real_zipkin.url, "zipkin")
    assert made == accepted == 10 and lost == 0
    spans = until(lambda: (s := real_zipkin.trace(trace)) and len(s) == 10 and s, 10,
                  lambda: str(real_zipkin.trace(trace)))
    root = next(s for s in spans if "parentId" not in s)
    assert root["tags"]["epics.record.name"] == "BENCH:CALC0" and root["duration"] == 30
    assert root["localEndpoint"]["serviceName"] == "benchioc" and root["tags"]["process.pid"] == "4711"
    for s in spans:
        assert s is root or s["parentId"] == root["id"]
        assert root["timestamp"] <= s["timestamp"]
        assert s["timestamp"] + s["duration"] <= root["timestamp"] + root["duration"], "within its parent"


def test_receiver_that_is_no_zipkin(rotel):
    _, made, accepted, lost = send(rotel.url + "/api/v2/spans", "zipkin")
    assert made == lost == 10 and accepted == 0
