# SPDX-License-Identifier: BSD-3-Clause
"""The tables of what was tried (documentation/tried.md) are those of the recorded results, and miss nothing."""
import re

import pytest

from tests.harness import releases, tables
from tests.harness.service import Unit
from tests.kernels import check


def test_document():
    """Nobody has written in a table by hand, and no results were recorded without it."""
    text = tables.DOCUMENT.read_text()
    assert tables.put_in(text) == text, "python -m tests.harness.tables writes the tables"


def test_features():
    """Each member of ebpfMonFeatures has a row, by the words of ebpfMonReport, and what replaces it."""
    assert set(tables.FEATURES) == set(tables.feature_members())
    report = (tables.TOP / "ebpfMonSup" / "publish" / "report.c").read_text()
    said = re.search(r'"  kernel %s: (.*?)\\n"', report, re.S).group(1)
    said = re.sub(r'"\s*"', "", said)
    assert [part.removesuffix(" %s") for part in said.split(", ")] == [label for label, *_ in tables.FEATURES.values()]
    for row in tables.load("kernels").values():
        assert set(row["features"]) == {label for label, *_ in tables.FEATURES.values()}, row["kernel"]


def names_of_checks():
    """All checks that were recorded."""
    return sorted({name for row in tables.load("kernels").values() for name in row["checks"]})


@pytest.mark.parametrize("name", names_of_checks())
def test_check_has_a_row(name):
    """Each check of an emulated kernel counts for one row."""
    assert sum(bool(re.fullmatch(pattern, name)) for pattern in tables.WORKS.values()) == 1


def test_features_of_a_log():
    said = {"log": "ebpfMon: runs\n  kernel 5.10.0-46: bpf_loop no, uprobe_multi yes, return probes under seccomp yes\n"}
    assert check.features(said) == {"bpf_loop": "no", "uprobe_multi": "yes", "return probes under seccomp": "yes"}


def test_kernels():
    """Kernels were tried, one for which the other object is loaded among them, and counts, puts and traces are right there. On
    aarch64 not all are: the document says which."""
    rows = tables.load("kernels")
    assert "no" in [row["features"]["bpf_loop"] for row in rows.values()]
    failed = {row["kernel"]: [name for name, ok in row["checks"].items() if not ok and re.match("counts|put|trace", name)]
              for row in rows.values() if not row["kernel"].endswith("arm64")}
    assert not any(failed.values()), failed


def test_releases():
    """Each build has a row, and nothing failed there."""
    rows = tables.load("releases")
    assert {f"{b.release} {b.kind}" for b in releases.find()} <= set(rows)
    assert all(all(row["tests"].values()) for row in rows.values())


def test_capabilities():
    """Each capability of the unit has a row in which something is missing that the unit's own has."""
    rows = tables.load("capabilities")
    whole = rows["the unit's"]
    assert whole["watched"] == "yes"
    for capability in Unit(tables.TOP / "service" / "ebpfmon.service").capabilities:
        row = rows[f"the unit's without {capability}"]
        assert row["subjects"] != whole["subjects"], capability
