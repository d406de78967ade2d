# SPDX-License-Identifier: BSD-3-Clause
"""An IOC that was linked with static libraries and stripped: the monitor recognises its functions by their code. If it
does not recognise them, the IOC is listed with the missing functions, and watched as soon as there are symbols, at any
of the known places. Files without section headers."""
import lzma
import os
import shutil
import struct
from pathlib import Path

import pytest
from tests.harness import ca, db, paths
from tests.harness.stripped import monitor, places, program  # noqa: F401 (fixtures)
from tests.harness.stripped import build_id, note_of, run, set_build_id, wait_note
from tests.harness.wait import until

DATABASE = db.READY + db.chain("C", 5) + db.record("ao", "AO")
N = 50


def start_ioc(new_ioc, program):
    return new_ioc(DATABASE, kind="latencyIoc", program=program).start()


def is_watched_exactly(monitor, ioc):
    """Checks that each record is counted, and that a put has a name and a result."""
    monitor.wait_ioc(ioc, records=len(DATABASE.splitlines()), seconds=60)
    until(lambda: monitor.records(ioc.name), 20, "counts")
    before = {n: c.count for n, c in monitor.records(ioc.name).items()}
    for i in range(N):
        ca.pv(f"{ioc.prefix}C0.PROC").put(1, wait=bool(i % 2), timeout=60)
    truth = int(ioc.get("C4"))
    assert truth == N

    def counts():
        return {n: c.count - before[n] for n, c in monitor.records(ioc.name).items() if n.startswith(ioc.prefix + "C")}

    until(lambda: set(counts().values()) == {N}, 20, counts)
    ioc.put("AO", 4.5)
    line = until(lambda: next((l for l in monitor.lines("PUT_LOG").splitlines() if f"{ioc.prefix}AO 0 -> 4.5 by " in l), None),
                 10, lambda: monitor.lines("PUT_LOG"))
    assert str(os.getpid()) in line and "not seen" not in line, line


def test_is_recognised(new_ioc, monitor, tmp_path):
    """An IOC without any symbols is watched. The note says what was not recognised, and is no trouble."""
    stripped = tmp_path / "staticIoc"
    run("strip", "-o", stripped, paths.STATIC_IOC)
    ioc = start_ioc(new_ioc, stripped)
    is_watched_exactly(monitor, ioc)
    until(lambda: "no record seen yet" not in note_of(monitor, ioc), 20, lambda: note_of(monitor, ioc))
    assert note_of(monitor, ioc).startswith("recognised without symbols"), note_of(monitor, ioc)
    assert not [n for n, c in monitor.records(ioc.name).items() if "atleast" in c.flags]
    monitor.wait_state("Running")


def test_without_shell(new_ioc, monitor, tmp_path):
    """The program lacks the commands of the CA server, as one that is linked without it."""
    whole, stripped = tmp_path / "whole", tmp_path / "staticIoc"
    data = paths.STATIC_IOC.read_bytes()
    for command in (b"casr", b"scanppl", b"dbpf"):
        assert b"\0" + command + b"\0" in data
        data = data.replace(b"\0" + command + b"\0", b"\0" + command.upper() + b"\0")
    whole.write_bytes(data)
    run("strip", "-o", stripped, whole)
    stripped.chmod(0o755)
    is_watched_exactly(monitor, start_ioc(new_ioc, stripped))


def test_is_listed_without_symbols(program, new_ioc, monitor):
    """The IOC is listed with its name and release, and the reason. Puts are seen in packets, and its resources are
    measured. No records are counted."""
    ioc = start_ioc(new_ioc, program[1])
    row = monitor.wait_ioc(ioc, level="off", records=0)
    assert row[:3] == (ioc.name, row[1], 0) and row[1].startswith("7."), row
    wait_note(monitor, ioc, "stripped, no symbols")
    monitor.wait_text("STATE_MSG", lambda text: build_id(program[1]) in text)
    monitor.wait_state("Degraded")
    ioc.put("AO", 4.5)
    line = until(lambda: next((l for l in monitor.lines("PUT_LOG").splitlines() if f"{ioc.prefix}AO " in l), None), 20,
                 lambda: monitor.lines("PUT_LOG"))
    assert "4.5" in line and str(os.getpid()) in line, line
    until(lambda: ioc.name in monitor.list("IOC_HEALTH_NAMES"), 10, "its resources")
    assert monitor.records(ioc.name) == {}


def test_symbols_that_come_later(program, new_ioc, monitor, places):
    """The IOC and the monitor run when the command ebpfMonSymbols fills the folder of the site."""
    folder = places[0]
    ioc = start_ioc(new_ioc, program[1])
    monitor.wait_ioc(ioc, level="off", records=0)
    wait_note(monitor, ioc, "stripped, no symbols")
    made = run(paths.SYMBOLS, folder, program[0]).split()
    assert made == [str(folder / build_id(program[0])[:2] / (build_id(program[0])[2:] + ".debug"))]
    is_watched_exactly(monitor, ioc)
    monitor.wait_state("Running")


def place_debug_data(whole, stripped, tmp_path, _cache):
    """Puts the symbols into the program itself, packed, as Fedora does it."""
    symbols = tmp_path / "mini"
    run("objcopy", "--only-keep-debug", whole, symbols)
    run("objcopy", "--strip-debug", symbols)
    (tmp_path / "mini.xz").write_bytes(lzma.compress(symbols.read_bytes()))
    run("objcopy", "--add-section", f".gnu_debugdata={tmp_path / 'mini.xz'}", stripped)


def place_debug_link(whole, stripped, _tmp, _cache):
    """Puts the symbols into the folder .debug beside the program, with the name that the program gives."""
    folder = stripped.parent / ".debug"
    folder.mkdir()
    run("objcopy", "--only-keep-debug", whole, folder / "staticIoc.debug")
    run("objcopy", f"--add-gnu-debuglink={folder / 'staticIoc.debug'}", stripped)


def place_cache(whole, stripped, _tmp, cache):
    """Puts the symbols where a debuginfod client keeps downloaded files."""
    folder = cache / build_id(stripped)
    folder.mkdir(parents=True)
    run("objcopy", "--only-keep-debug", whole, folder / "debuginfo")


@pytest.mark.parametrize("place", [place_debug_data, place_debug_link, place_cache])
def test_places_of_symbols(place, program, new_ioc, monitor, places, tmp_path):
    place(*program, tmp_path, places[1])
    is_watched_exactly(monitor, start_ioc(new_ioc, program[1]))


def test_symbols_of_another_build(program, new_ioc, monitor, places, tmp_path):
    """A file with the right name but another build-id is not used."""
    whole, stripped = program
    other = tmp_path / "other"
    set_build_id(whole, other, os.urandom(20))
    place_cache(other, stripped, tmp_path, places[1])
    ioc = start_ioc(new_ioc, stripped)
    wait_note(monitor, ioc, "stripped, no symbols")


def test_below_the_root_of_the_process(program, new_ioc, monitor, tmp_path):
    """/usr/lib/debug/.build-id in the file system that the IOC sees, which differs from the monitor's."""
    whole, stripped = program
    folder = tmp_path / "debug"
    number = build_id(whole)
    file = folder / ".build-id" / number[:2] / f"{number[2:]}.debug"
    file.parent.mkdir(parents=True)
    run("objcopy", "--only-keep-debug", whole, file)
    wrapper = tmp_path / "in_its_own"
    wrapper.write_text(f"#!/bin/sh\nmount -t tmpfs none /usr/lib/debug && "
                       f"cp -r {folder}/.build-id /usr/lib/debug/ && exec {stripped} \"$@\"\n")
    wrapper.chmod(0o755)
    Path("/usr/lib/debug").mkdir(exist_ok=True)
    outer = tmp_path / "outer"
    outer.write_text(f'#!/bin/sh\nexec unshare --mount {wrapper} "$@"\n')
    outer.chmod(0o755)
    is_watched_exactly(monitor, start_ioc(new_ioc, outer))


@pytest.mark.parametrize("how", ["no headers", "headers of zeros"])
def test_without_section_headers(how, new_ioc, monitor, tmp_path):
    """Shared libraries of Base without section headers: the monitor finds .dynsym as the loader does."""
    libs = tmp_path / "lib"
    libs.mkdir()
    for lib in (paths.BASE / "lib" / paths.ARCH).glob("*.so*"):
        copy = libs / lib.name
        shutil.copy(lib, copy)
        data = bytearray(copy.read_bytes())
        begin, = struct.unpack_from("<Q", data, 40)  # e_shoff
        if how == "no headers":
            data[40:48] = bytes(8)
            data[60:64] = bytes(4)
        else:
            data[begin:] = bytes(len(data) - begin)
        copy.write_bytes(data)
    ioc = new_ioc(DATABASE, kind="latencyIoc", environ={"LD_LIBRARY_PATH": str(libs)}).start()
    is_watched_exactly(monitor, ioc)
