# SPDX-License-Identifier: BSD-3-Clause
"""Each link in the documents leads to an existing place, each file and function that a page for developers names exists,
and each folder of the sources belongs to exactly one of these pages."""
import email.utils
import functools
import json
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.harness import paths

WORD = re.compile(r"\w+")
ARCHITECTURE = paths.TOP / "documentation" / "develop" / "ARCHITECTURE.md"
FILES = sorted([*paths.TOP.glob("*.md"), *(paths.TOP / "documentation").rglob("*.md")])


DEVELOP = sorted((paths.TOP / "documentation" / "develop").glob("*.md"))
FOLDERS = ("bpf", "ebpfMonSup", "ebpfMonModules", "ebpfMonHistory", "ebpfMonTop", "ebpfMonApp", "iocBoot", "service", "debian", "configure", "tests", "tools")


@functools.cache
def tracked():
    """The files of the tree, without those that are built."""
    if (paths.TOP / ".git").exists():
        names = subprocess.run(["git", "ls-files"], cwd=paths.TOP, capture_output=True, text=True, check=True).stdout.split()
        return [name for name in names if (paths.TOP / name).exists()]
    return [str(p.relative_to(paths.TOP)) for p in paths.TOP.rglob("*") if p.is_file() and "/O." not in str(p)]


@functools.cache
def words_of_sources():
    return {word for name in tracked() if name.split("/")[0] in FOLDERS and "corpus" not in name
            for word in WORD.findall((paths.TOP / name).read_text(errors="ignore"))}


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


def test_each_folder_has_a_page():
    """A page claims folders in its line "Sources". A folder that no page claims belongs to the page of the folder around it."""
    claims = {}
    for path in DEVELOP:
        for line in re.findall(r"(?m)^Sources: (.*)$", path.read_text()):
            for folder in re.findall(r"`([^`]+)`", line):
                assert folder not in claims, (folder, claims[folder], path.name)
                claims[folder] = path.name
    folders = {str(parent) for name in tracked() for parent in Path(name).parents if name.split("/")[0] in FOLDERS}
    folders = {name for name in folders if name != "." and "corpus" not in name}
    assert set(claims) <= folders, set(claims) - folders
    # a folder of the support library or of the kernel part is a room, and has a page that says so
    assert not {name for name in folders if name.startswith(("ebpfMonSup/", "bpf/")) and name not in claims}
    assert not {name for name in folders if not any(str(p) in claims for p in (Path(name), *Path(name).parents))}
    for path, top in (ARCHITECTURE, "ebpfMonSup"), (ARCHITECTURE.with_name("probes.md"), "bpf"):
        rows, = re.findall(r"(?m)^\| floor \| room.*\n\|.*\n((?:\|.*\n)+)", path.read_text())
        for rooms, page in re.findall(r"(?m)^\| \d \| (.*?) \|.*\| (.*?) \|$", rows):
            for room in re.findall(r"`([^`]+)`", rooms):
                named = re.search(r"\((\w+\.md)\)", page)
                assert claims[f"{top}/{room}"] == (named[1] if named else path.name), (top, room)


@pytest.mark.parametrize("path", [*DEVELOP, paths.TOP / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_pages_name_what_there_is(path):
    """Each file, function and test that a page for developers names exists."""
    files = tracked()
    names = {Path(name).name for name in files}
    text = plain(path)
    for name in re.findall(r"`((?:[\w.-]+/)*[\w.-]+\.(?:c|h|cpp|py|sh|md|substitutions|yml|cmd|json|archive))`", text):
        assert name in names if "/" not in name else any(f"/{f}".endswith("/" + name) for f in files), name
    words = words_of_sources()
    for name in set(re.findall(r"`(ebpfMon\w+|ebpfmon_\w+|EBPFMON_\w+|test_\w+)`", text)):
        assert name in words or f"{name}.py" in names or f"{name}.c" in names, name
    for name, file in re.findall(r"`(\w+)`\s\(`([\w./-]+\.(?:c|h|cpp|py|sh))`\)", text):  # `name` (`file.c`): the file has this name
        found = [paths.TOP / f for f in files if f"/{f}".endswith("/" + file)]
        assert any(name in WORD.findall(f.read_text()) for f in found), f"{name} is not in {file}"


def test_page_of_logs_has_all_keys():
    """The schema of put logs, its page and the code have the same keys."""
    schema = json.loads((paths.TOP / "documentation" / "use" / "putLog.schema.json").read_text())
    text = (paths.TOP / "documentation" / "use" / "putLog.md").read_text()
    source = (paths.TOP / "ebpfMonSup" / "export" / "log" / "format.c").read_text().split("/* --- JSON --- */")[1]
    written = set(re.findall(r'\(j, "(\w+)"', source))
    assert set(schema["properties"]) == written, set(schema["properties"]) ^ written
    lines = text[text.index("| key | meaning |"):text.index("## Puts through a gateway")]
    assert written <= set(re.findall(r"`(\w+)`", lines)), written - set(re.findall(r"`(\w+)`", lines))


def test_first_pages_are_short():
    """Who comes here first reads these two."""
    for path, most in (paths.TOP / "README.md", 700), (ARCHITECTURE, 1650):
        assert len(path.read_text().split()) <= most, path.name


def test_release_has_one_date():
    """The newest release in the release notes, in Debian's changelog, and the date of the manual pages."""
    day = re.search(r"(?m)^## [\d.]+ \((.*)\)$", (paths.TOP / "documentation" / "RELEASE_NOTES.md").read_text())[1]
    built = re.search(r"(?m)^ -- .*>  (.*)$", (paths.TOP / "debian" / "changelog").read_text())[1]
    assert str(email.utils.parsedate_to_datetime(built).date()) == day
    for page in (paths.TOP / "service").glob("*.1"):
        assert day in page.read_text().split(".SH", 1)[0], page.name


def test_folders_have_one_spelling():
    """The folders of the service are written in one way: /var/log/ebpfmon."""
    for name in tracked():
        text = (paths.TOP / name).read_bytes().decode(errors="replace")
        found = re.search(r"/(?:var/log|var/lib|etc|run|usr/share|usr/lib)/(?!ebpfmon)(?i:ebpfmon)\b", text)
        assert not found, (name, found and found[0])


def test_pictures_are_whole():
    """The pictures show the present displays: one of each, drawn by tools/pictures.sh."""
    folder = paths.TOP / "documentation" / "pictures"
    displays = {p.stem for p in (paths.TOP / "ebpfMonApp" / "op" / "bob").glob("ebpfMon*.bob")} - {"ebpfMonQuery"}
    assert {p.stem for p in folder.glob("*.svg")} == displays | {"demo"}
    for path in folder.glob("*.svg"):
        text = "".join(ET.parse(path).getroot().itertext())
        assert "DEMO:" in text and "Running" in text, path.name
