# SPDX-License-Identifier: BSD-3-Clause
"""The reference says what there is: each PV with its record type and unit, each command, each reason of a loss, each
cross-check that can fail; and nothing else."""
import re

from tests.harness import paths

USE = paths.TOP / "documentation" / "use"
REFERENCE = (USE / "reference.md").read_text()
SUP = paths.TOP / "ebpfMonSup"
MACRO = {"$(N=$(REC))": "$(N)", "$(N=$(IOC))": "$(N)"}


def records():
    """Name → record type, type of elements, unit, and whether operators may write it. Without the headings of tables."""
    found = {}
    for file in "ebpfMon.db", "ebpfMonWatch.db", "ebpfMonIoc.db", "ebpfMonWatchSubscriptions.db", "ebpfMonIocSubscriptions.db", *paths.MODULE_DBS:
        text = (paths.DB / file).read_text()
        for rtype, name, body in re.findall(r'(?ms)^record\((\w+), "\$\(P\)([^"]+)"\) \{$(.*?)^\}', text):
            for long, short in MACRO.items():
                name = name.replace(long, short)
            fields = dict(re.findall(r'field\((\w+),\s*"([^"]*)"\)', body))
            if not name.endswith("_LABELS_"):
                found[name] = rtype, fields.get("FTVL", ""), fields.get("EGU", ""), fields["ASG"] == "EBPFMON"
    return found


def rows():
    """PV → the cells of its row, by the headings of the table."""
    found = {}
    for head, body in re.findall(r"(?m)^(\| PV \| record, unit \|.*)\n\|[-:| ]+\|\n((?:\|.*\n)+)", REFERENCE):
        names = [cell.strip() for cell in head.strip("|").split("|")]
        for line in body.splitlines():
            cells = dict(zip(names, (cell.strip() for cell in line.strip().strip("|").split("|"))))
            for pv in re.findall(r"`([^`]+)`", cells["PV"]):
                assert pv not in found, pv
                found[pv] = cells
    return found


RECORDS, ROWS = records(), rows()


def test_each_pv_has_a_row():
    assert set(RECORDS) == set(ROWS)


def test_types_and_units():
    for name, (rtype, ftvl, unit, is_written) in RECORDS.items():
        cells = ROWS[name]
        cell = cells["record, unit"]
        words = re.findall(r"\w+", cell)
        assert rtype in words and (not ftvl or ftvl in words), (name, cell)
        assert not unit or unit in re.split("[,;] ", cell), (name, unit)
        assert is_written == ("**w**" in cell), name


def test_each_command_is_documented():
    """Each command of the shell has a heading or a row, or is listed as described on another page, which names it."""
    found = set()
    for path in [*(SUP / "record").glob("*.c"), *(paths.TOP / "ebpfMonModules").rglob("*.c")]:
        if "/O." not in str(path):
            found.update(re.findall(r'(?m)^    \{"(ebpfMon\w+)", ', path.read_text()))
    commands = REFERENCE.split("\n## Commands\n")[1].split("\n## ")[0]
    heads = set(re.findall(r"ebpfMon\w+", " ".join(re.findall(r"(?m)^(?:###|\|) (.*?)(?: \||$)", commands))))
    elsewhere = {}
    for names, page in re.findall(r"\[(`ebpfMon[^\]]*)\]\((\w+\.md)#", REFERENCE):
        elsewhere.update((name, page) for name in re.findall(r"ebpfMon\w+", names))
    assert found and found <= heads | set(elsewhere), found - heads - set(elsewhere)
    assert heads - {"ebpfMonHangLimit", "ebpfMonWaitLimit"} <= found
    for name, page in elsewhere.items():
        assert name in (USE / page).read_text(), (name, page)


def test_reasons_of_losses():
    text = (SUP / "publish" / "publisher.c").read_text()
    reasons = set(re.findall(r'\] = "([^"]+)"', text))
    assert reasons == set(re.findall(r"(?m)^\| `([^`]+)` \|", REFERENCE.split("| reason |")[1].split("###")[0]))


def test_cross_checks():
    text = (SUP / "model" / "audits.c").read_text()
    said = set(re.findall(r'return "([^"]+)";', text))
    rows_of = re.findall(r"(?m)^\| `[^`]*?: ([^`]+)` \|", REFERENCE.split("### Cross-checks")[1].split("\n## ")[0])
    assert said == set(rows_of)


# Messages of clients, of their libraries and of access security
OF_EPICS = {"Write access denied", "Channel write request failed", "Put not permitted", "Put Disabled"}


def test_messages_of_troubleshooting_exist():
    """Each message of the page is one that the program or a tool prints: it has three words in a row that are in a source."""
    files = [path for folder in ("ebpfMonSup", "ebpfMonModules", "ebpfMonApp/src", "tools") for path in (paths.TOP / folder).rglob("*.*")
             if path.suffix in (".c", ".h", ".cpp", ".sh") and "/O." not in str(path)]
    code = re.sub(r'"\s*\n\s*"', "", "\n".join(path.read_text() for path in files))
    code = re.sub(r"%[-.*0-9]*[a-zA-Z]+", "%", code)
    for cell in re.findall(r"(?m)^\| (.*?) \|", (USE / "troubleshooting.md").read_text()):
        for message in set(re.findall(r"`([^`]+)`", cell)) - OF_EPICS:
            parts = [part.split() for part in re.split(r'…|\d+|"|[();]|: |, ', message)]
            rows = [" ".join(words[i:i + 3]) for words in parts for i in range(len(words) - 2)]
            assert not rows or any(row in code for row in rows), message


def test_lights_have_their_tests():
    """Each test that the table of lights names exists, and each PV is one with an alarm."""
    table = REFERENCE.partition("### Lights and their tests")[2].partition("\n## ")[0]
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", table)
    assert len(named) > 15
    for file, test in named:
        assert re.search(rf"(?m)^def {test}\(", (paths.TESTS / "integration" / file).read_text()), (file, test)
    assert set(re.findall(r"`([A-Z_]+)`", "".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| ")))) <= set(RECORDS)
