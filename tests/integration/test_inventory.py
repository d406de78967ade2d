# SPDX-License-Identifier: BSD-3-Clause
"""The inventory in files is right: its contents are the answers of the IOC, and the differences of two files are found."""
import calendar
import json
import time
from fnmatch import fnmatch

import pytest
from tests.harness import ca, db
from tests.harness.ioc import OURS
from tests.harness.wait import until

DATABASE = db.READY + r'''
record(ai, "$(P)CURRENT") {
    field(DESC, "Strom im Ring \\ \"neu\"") field(EGU, "mA") field(PREC, "3") field(HIHI, "500.25") field(HSV, "MINOR")
    field(HOPR, "1e3") field(INP, "$(P)READY NPP MS") field(SCAN, ".5 second") field(FLNK, "$(P)SUM")
    info(archive, "monitor 1") info(owner, "ring")
    alias("$(P)DCCT")
}
record(calc, "$(P)SUM") { field(CALC, "A+B") field(INPA, "$(P)CURRENT CP NMS") field(INPB, "3.5") }
record(ao, "$(P)SOFT") { field(DTYP, "Raw Soft Channel") field(OUT, "NOBODY:HAS:IT CA") field(DRVH, "-0.1") }
record(longin, "$(P)JSON") { field(INP, {const: 7}) }
record(stringin, "$(P)STAMP") { field(DTYP, "Soft Timestamp") field(INP, "@%Y-%m-%d") }
record(waveform, "$(P)WAVE") { field(FTVL, "SHORT") field(NELM, "12") }
record(bo, "$(P)SWITCH") { field(ZNAM, "aus") field(ONAM, "ein") }
'''


@pytest.fixture
def ioc(new_ioc):
    return new_ioc(DATABASE).start()


@pytest.fixture(scope="module")
def started(module_monitor):
    return module_monitor().start()


@pytest.fixture
def monitor(started, ioc):
    """One monitor for all tests. It watches the IOC of this module and no other."""
    def ours():
        return {pid for pid, (name, *_) in started.iocs().items() if fnmatch(name, OURS)}

    started.wait_ioc(ioc)
    until(lambda: ours() == {ioc.pid}, 30, lambda: f"the others left: {started.iocs()}")
    yield started
    started.command("ebpfMonInventoryKeep off")


def command(monitor, line):
    """The output of this command, without the echo of the shell."""
    return [text for text in monitor.process.command(line) if line not in text]


def write(monitor, path, *args):
    said = command(monitor, " ".join(["ebpfMonInventory", str(path), *args]))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return said, [l for l in lines if "time" in l], {l["record"]: l for l in lines if "record" in l}


def test_a_link_of_somebody_else(monitor, ioc, tmp_path):
    """The monitor first writes a file beside the final place. It does not follow a symbolic link there."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "all.json.new").symlink_to(victim)
    (tmp_path / "all.json").symlink_to(victim)
    said, iocs, records = write(monitor, tmp_path / "all.json")
    assert victim.read_text() == "precious" and len(records) == 8, said
    assert not (tmp_path / "all.json").is_symlink()


def test_fields_are_those_of_the_ioc(monitor, ioc, tmp_path):
    said, iocs, records = write(monitor, tmp_path / "all.json")
    assert said[-1:] == [f"{tmp_path}/all.json: 1 IOCs, 8 records"] and len(records) == 8  # before it, the monitor may log that IOCs start
    head, = iocs
    assert head["ioc"] == ioc.name and head["pid"] == ioc.pid and head["records"] == 8
    assert head["variables"]["RSRV_SERVER_PORT"] == str(ioc.port)
    compared = 0
    for name, line in records.items():
        assert line["ioc"] == ioc.name and line["type"] == ca.get(name + ".RTYP")
        for field, value in line["fields"].items():
            if field in ("INP", "OUT", "FLNK", "DOL", "SIOL") or field.startswith("INP"):
                theirs = ca.get_text(f"{name}.{field}$")
                assert value == theirs, f"{name}.{field}"
            else:
                theirs = ca.get(f"{name}.{field}", as_string=isinstance(ca.get(f"{name}.{field}"), str) or
                                "enum" in ca.pv(f"{name}.{field}").type)
                assert (float(value) == theirs if isinstance(theirs, (int, float)) else value == ca.utf8(theirs)), (name, field)
            compared += 1
    assert compared > 90
    p = ioc.prefix
    line = records[p + "CURRENT"]
    assert line["aliases"] == [p + "DCCT"] and line["info"] == {"archive": "monitor 1", "owner": "ring"}
    assert line["fields"]["HIHI"] == "500.25" and line["fields"]["INP"] == p + "READY NPP MS"
    assert records[p + "SOFT"]["fields"]["DTYP"] == "Raw Soft Channel"
    assert records[p + "JSON"]["fields"]["INP"] == "{const:7}" and records[p + "WAVE"]["fields"]["FTVL"] == "SHORT"


def test_long_info_tag_with_ends_of_lines(monitor, new_ioc, tmp_path):
    """An info tag is in the file as the database has it: its tabs, ends of lines, and thousands of bytes."""
    value = "{\n\tring}\n" + 3000 * "x"
    tag = value.replace("\n", r"\n").replace("\t", r"\t")
    second = new_ioc(db.READY + f'record(ai, "$(P)TAG") {{\ninfo(owner, "{tag}") }}').start()  # Base cuts long lines with macros
    monitor.wait_ioc(second)
    _, _, records = write(monitor, tmp_path / "all.json", second.name)
    assert records[second.prefix + "TAG"]["info"] == {"owner": value}


def test_what_changed(monitor, ioc, new_ioc, tmp_path):
    before, after = tmp_path / "monday.json", tmp_path / "today.json"
    write(monitor, before)
    p = ioc.prefix
    ca.put(p + "CURRENT.HIHI", 450)
    ca.put(p + "SUM.INPB", "")
    ca.put(p + "SWITCH.DESC", "Pumpe")
    write(monitor, after)
    assert command(monitor, f"ebpfMonInventoryDiff {before} {after}") == [
        f"~ {ioc.name} {p}CURRENT (ai)", '    fields.HIHI: "500.25" -> "450"',
        f"~ {ioc.name} {p}SUM (calc)", '    fields.INPB: "3.5" -> nothing',
        f"~ {ioc.name} {p}SWITCH (bo)", '    fields.DESC: nothing -> "Pumpe"',
        "0 records added, 0 removed, 3 changed, 5 the same"]
    assert command(monitor, f"ebpfMonInventoryDiff {after} {after}") == [
        "0 records added, 0 removed, 0 changed, 8 the same"]
    second = new_ioc(db.READY).start()
    monitor.wait_ioc(second)
    write(monitor, after)
    new = [f"+ {second.name} (IOC)", f"+ {second.name} {second.prefix}READY (calc)"]
    said = command(monitor, f"ebpfMonInventoryDiff {before} {after}")
    assert set(new) < set(said) and said[-2] == "1 IOCs added, 0 removed, 0 changed, 1 the same"
    assert command(monitor, f"ebpfMonInventoryDiff {before} {after} {second.name}") == [
        *new, "1 IOCs added, 0 removed, 0 changed, 0 the same", "1 records added, 0 removed, 0 changed, 0 the same"]
    ioc.kill()
    monitor.wait_gone(ioc.pid)
    _, iocs, records = write(monitor, after)
    assert [i["ioc"] for i in iocs] == [second.name] and list(records) == [second.prefix + "READY"]
    said = command(monitor, f"ebpfMonInventoryDiff {before} {after}")
    assert f"- {ioc.name} {p}CURRENT (ai)" in said and said[-1] == "1 records added, 8 removed, 0 changed, 0 the same"


def head_start(head):
    return calendar.timegm(time.strptime(head["variables"]["IOC_STARTED"], "%Y-%m-%dT%H:%M:%SZ"))


def test_restarted_elsewhere(monitor, ioc, tmp_path):
    """An IOC that was restarted, elsewhere and with another variable, is told although its records are the same."""
    before, after = tmp_path / "monday.json", tmp_path / "today.json"
    write(monitor, before)
    head, = [json.loads(line) for line in before.read_text().splitlines() if '"time"' in line]
    ioc.stop()
    monitor.wait_gone(ioc.pid)
    ioc.environ["ENGINEER"] = "N. Obody"
    ioc.tmp = tmp_path / "elsewhere"
    ioc.tmp.mkdir()
    until(lambda: time.time() > head_start(head) + 2, 10, "a start in another second")
    ioc.start()
    monitor.wait_ioc(ioc)
    write(monitor, after)
    started = json.loads(after.read_text().splitlines()[0])["variables"]["IOC_STARTED"]
    assert sorted(command(monitor, f"ebpfMonInventoryDiff {before} {after}")) == sorted([
        f"~ {ioc.name} (IOC)", '    variables.ENGINEER: nothing -> "N. Obody"',
        f'    variables.PWD: "{head["variables"]["PWD"]}" -> "{ioc.tmp}"',
        f'    variables.IOC_STARTED: "{head["variables"]["IOC_STARTED"]}" -> "{started}"',
        "0 IOCs added, 0 removed, 1 changed, 0 the same", "0 records added, 0 removed, 0 changed, 8 the same"])


def test_pattern_and_refusals(monitor, ioc, tmp_path):
    said, iocs, records = write(monitor, tmp_path / "none.json", '"nobody*"')
    assert said == [f"{tmp_path}/none.json: 0 IOCs, 0 records"] and not iocs and not records
    kept = tmp_path / "none.json"
    for line, why in (("ebpfMonInventory /nowhere/x.json", "/nowhere/x.json is not written: No such file or directory. Give a file"),
                      (f"ebpfMonInventoryDiff {kept} {tmp_path}/missing.json", "missing.json: No such file"),
                      (f"ebpfMonInventoryDiff {tmp_path} {kept}", "not a plain file")):
        monitor.process.command(line)
        until(lambda: any(why in text for text in monitor.process.lines), 10, lambda: f"{why!r}: {monitor.process.output()}")
    (tmp_path / "other.json").write_text('{"a": 1}\nnonsense\n')
    said = command(monitor, f"ebpfMonInventoryDiff {kept} {tmp_path}/other.json")
    assert "2 lines do not belong to an inventory: are these the right files?" in said
    assert not list(tmp_path.glob("*.new"))


# --- kept in a file -----------------------------------------------------------------------------------------------
def kept(path):
    """IOC → its records, from a file that may not exist yet."""
    found = {}
    for line in map(json.loads, path.read_text().splitlines() if path.exists() else ()):
        found.setdefault(line["ioc"], []).extend([line["record"]] if "record" in line else [])
    return found


def test_kept_on_change(monitor, ioc, new_ioc, tmp_path):
    """The inventory is written when an IOC appears, gets another database, or ends; not while nothing changes."""
    path = tmp_path / "kept.json"
    assert command(monitor, "ebpfMonInventoryKeep") == ["No inventory is kept."]
    monitor.process.command(f"ebpfMonInventoryKeep {path} 1 3")
    until(lambda: len(kept(path).get(ioc.name, ())) == 8, 30, lambda: str(kept(path)))
    second = new_ioc(db.READY).start()
    until(lambda: set(kept(path)) == {ioc.name, second.name}, 30, lambda: str(kept(path)))
    assert set(kept(tmp_path / "kept.json.1")) == {ioc.name}
    second.kill()
    until(lambda: set(kept(path)) == {ioc.name}, 30, lambda: str(kept(path)))
    same = path.stat().st_ino
    third = new_ioc(DATABASE, name=second.name).start()
    until(lambda: len(kept(path).get(third.name, ())) == 8, 30, lambda: str(kept(path)))
    assert path.stat().st_ino != same and (tmp_path / "kept.json.3").exists() and not (tmp_path / "kept.json.4").exists()
    said, = command(monitor, "ebpfMonInventoryKeep")
    assert said.startswith(f"{path}: 2 IOCs, 16 records, at 2")
    same = path.stat().st_ino
    ca.put(ioc.prefix + "CURRENT.HIHI", 450)
    monitor.process.command("ebpfMonLevel * 1")  # the follower wakes this thread, but nothing has changed
    monitor.process.command("ebpfMonLevel * 2")
    monitor.wait_ioc(ioc, level="chains")
    assert path.stat().st_ino == same
    monitor.process.command("ebpfMonInventoryKeep off")
    assert command(monitor, "ebpfMonInventoryKeep") == ["No inventory is kept."]
    assert not list(tmp_path.glob("*.n*"))


def test_kept_no_more_often_than_asked(monitor, ioc, new_ioc, tmp_path):
    """A change is not written before the shortest time between two files is over."""
    path, seconds = tmp_path / "kept.json", 8
    monitor.process.command(f"ebpfMonInventoryKeep {path} {seconds} 3")
    until(lambda: ioc.name in kept(path), 30, lambda: str(kept(path)))
    second = new_ioc(db.READY).start()
    until(lambda: second.name in kept(path), 60, lambda: str(kept(path)))
    assert path.stat().st_mtime - (tmp_path / "kept.json.1").stat().st_mtime > seconds - 2


def test_ioc_that_cannot_be_read_does_not_displace_older_files(monitor, ioc, new_ioc, tmp_path):
    """While an IOC cannot be read, the file is written again and again. The older files change only with the IOCs."""
    path, older = tmp_path / "kept.json", tmp_path / "kept.json.1"
    broken = new_ioc(db.READY + db.unreadable("TAGS")).start()
    monitor.wait_ioc(broken)

    def write_twice():
        for _ in range(2):
            last = path.stat().st_mtime_ns if path.exists() else None
            until(lambda: path.exists() and path.stat().st_mtime_ns != last, 30, monitor.process.output)

    monitor.process.command(f"ebpfMonInventoryKeep {path} 1 3")
    write_twice()
    assert set(kept(path)) == {ioc.name} and not older.exists()
    third = new_ioc(db.READY).start()
    until(lambda: set(kept(path)) == {ioc.name, third.name}, 30, lambda: str(kept(path)))
    write_twice()
    assert set(kept(older)) == {ioc.name} and not (tmp_path / "kept.json.2").exists()


def test_kept_in_a_folder_that_is_not_there(monitor, ioc, tmp_path):
    """The monitor reports the missing folder once, and tries again later. It does not follow a symbolic link at this
    place."""
    folder, other = tmp_path / "later", tmp_path / "other"
    monitor.process.command(f"ebpfMonInventoryKeep {folder}/kept.json 1")
    until(lambda: any("the inventory cannot be kept in" in l for l in monitor.process.lines), 30, monitor.process.output)
    folder.mkdir()
    (folder / "kept.json.next.new").symlink_to(other)
    until(lambda: ioc.name in kept(folder / "kept.json"), 30, monitor.process.output)
    assert not other.exists()
    until(lambda: any("is kept in" in l and "again" in l for l in monitor.process.lines), 30, monitor.process.output)
    assert len([l for l in monitor.process.lines if "the inventory cannot be kept in" in l]) == 1
    for line, why in (("ebpfMonInventoryKeep relative.json", "begins with /"), ("ebpfMonInventoryKeep /tmp/x -1", "1 or more")):
        monitor.process.command(line)
        until(lambda: any(why in l for l in monitor.process.lines), 10, monitor.process.output)
