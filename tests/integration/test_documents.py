# SPDX-License-Identifier: BSD-3-Clause
"""Each link in the documents leads to an existing place."""
import re
import xml.etree.ElementTree as ET

import pytest
from tests.harness import paths

FILES = sorted([*paths.TOP.glob("*.md"), *(paths.TOP / "documentation").rglob("*.md")])


def plain(path):
    """The text without blocks of code."""
    return re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.S | re.M)


def anchors(path):
    """The headings as GitHub names them, and anchors of our own."""
    found = set(re.findall(r'<a id="([^"]+)">', path.read_text()))
    for heading in re.findall(r"^#+ (.*)$", plain(path), re.M):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        unique, more = name, 0
        while unique in found:
            more += 1
            unique = f"{name}-{more}"
        found.add(unique)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", plain(path)):
        if re.match(r"https?:|mailto:", target):
            continue
        file, _, anchor = target.partition("#")
        to = (path.parent / file).resolve() if file else path
        assert to.exists(), f"{path.name}: {target}"
        if anchor and to.suffix == ".md":
            assert anchor in anchors(to), f"{path.name}: {target}"


def test_pictures_are_whole():
    """The pictures show the present displays: one of each, drawn by tools/pictures.sh."""
    folder = paths.TOP / "documentation" / "pictures"
    displays = {p.stem for p in (paths.TOP / "ebpfMonApp" / "op" / "bob").glob("ebpfMon*.bob")} - {"ebpfMonQuery"}
    assert {p.stem for p in folder.glob("*.svg")} == displays | {"demo"}
    for path in folder.glob("*.svg"):
        text = "".join(ET.parse(path).getroot().itertext())
        assert "DEMO:" in text and "Running" in text, path.name
