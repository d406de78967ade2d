# SPDX-License-Identifier: BSD-3-Clause
"""The tables of the documents (tests/harness/tables.py) agree with the recorded results, and miss nothing."""
import re

import pytest

from tests.harness import bpf, clangs, releases, tables
from tests.harness.service import Unit
from tests.kernels import check


@pytest.mark.parametrize("path", tables.TABLES, ids=lambda path: path.stem)
def test_document(path):
    """Nobody has changed a table by hand, and the tables have all recorded results."""
    assert tables.put_in(path) == path.read_text(), "python -m tests.harness.tables writes the tables"


def test_features():
    """Each member of ebpfMonFeatures has a row with the words of ebpfMonReport, and with its replacement."""
    assert set(tables.FEATURES) == set(tables.feature_members())
    report = (tables.TOP / "ebpfMonSup" / "publish" / "lists.c").read_text()
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
    """Each check of an emulated kernel belongs to one row. Whether a count is a lower bound belongs to the row of the count."""
    name = name.replace(f"{check.NO_MARK}: ", "counts: ")
    assert sum(bool(re.fullmatch(pattern, name)) for pattern in tables.WORKS.values()) == 1


def test_features_of_a_log():
    said = {"log": "ebpfMon: runs\n  kernel 5.10.0-46: bpf_loop no, uprobe_multi yes, return probes under seccomp yes\n"}
    assert check.features(said) == {"bpf_loop": "no", "uprobe_multi": "yes", "return probes under seccomp": "yes"}


def test_kernels():
    """Several kernels were tried, among them one that needs the second BPF object. Counts, puts and traces were right
    there. On aarch64 some were not: the document says which."""
    rows = tables.load("kernels")
    assert "no" in [row["features"]["bpf_loop"] for row in rows.values()]
    failed = {row["kernel"]: [name for name, ok in row["checks"].items() if not ok and re.match("counts|put|trace", name)]
              for row in rows.values() if not row["kernel"].endswith("arm64")}
    assert not any(failed.values()), failed


def test_clangs():
    """The least release of clang and the newest were tried, each also on a kernel that needs the second BPF object. No
    kernel refused its programs."""
    rows = tables.load("clangs")
    assert {str(clangs.KNOWN[0]), str(clangs.KNOWN[-1])} <= set(rows)
    assert not [row for row in rows.values() if any(of["refused"] for of in row["kernels"].values())]
    assert not [row for row in rows.values() if row["stack"] > bpf.LIMIT or "bullseye-security" not in row["kernels"]]


def test_releases():
    """Each build has a row, and none of its tests failed."""
    rows = tables.load("releases")
    assert {releases.title(b).replace("-", " ", 1) for b in releases.find()} <= set(rows)
    assert all(all(row["tests"].values()) for row in rows.values())


def test_capabilities():
    """Each capability of the unit has a row, and without this capability something is missing."""
    rows = tables.load("capabilities")
    whole = rows["the unit's"]
    assert whole["watched"] == "yes"
    for capability in Unit(tables.TOP / "service" / "ebpfmon.service").capabilities:
        row = rows[f"the unit's without {capability}"]
        assert row["subjects"] != whole["subjects"], capability
