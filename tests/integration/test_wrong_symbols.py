# SPDX-License-Identifier: BSD-3-Clause
"""A file of symbols that names functions at wrong addresses: the IOC goes on, no probe is set there or stays there, and nothing wrong
is counted. The judge of probes is the memory of the IOC: where it differs from the program's file, the kernel has put a probe."""
import os
import struct
from collections import namedtuple

import pytest
from tests.harness import ca, db
from tests.harness.stripped import monitor, places, program  # noqa: F401 (fixtures)
from tests.harness.stripped import build_id, note_of, run, set_build_id, wait_note
from tests.harness.wait import until

N = 50
Section = namedtuple("Section", "name type flags addr offset size link info align entry")


def symbol_table(data):
    """Of each entry of .symtab: its name, the offset of its value in the file, its value, and its type."""
    begin, = struct.unpack_from("<Q", data, 40)
    count, = struct.unpack_from("<H", data, 60)
    sections = [Section(*struct.unpack_from("<IIQQQQIIQQ", data, begin + 64 * i)) for i in range(count)]
    table = next(s for s in sections if s.type == 2)
    strings = sections[table.link].offset
    for at in range(table.offset, table.offset + table.size, 24):
        name, info, _, _, value = struct.unpack_from("<IBBHQ", data, at)
        end = data.index(b"\0", strings + name)
        yield data[strings + name:end].decode(), at + 8, value, info & 15


def change_symbols(file, change):
    """"change" gets the names of functions and their addresses, and returns others for some."""
    data = bytearray(file.read_bytes())
    functions = {name: (at, value) for name, at, value, kind in symbol_table(data) if kind == 2 and value}
    others = change({name: value for name, (_, value) in functions.items()})
    for name, value in others.items():
        struct.pack_into("<Q", data, functions[name][0], value)
    file.chmod(0o755)
    file.write_bytes(data)
    return others


def shifted(functions):
    """Each function lies three bytes farther: as in a program that was linked anew, with the same build-id."""
    return {name: value + 3 for name, value in functions.items()}


def exchanged(functions):
    """What seems to be dbScanUnlock is the lock of a mutex: a function that the IOC calls all the time, and that gets no record."""
    return {"dbScanUnlock": functions["epicsMutexLock"], "epicsMutexLock": functions["dbScanUnlock"]}


def place_site(symbols, stripped, places):
    number = build_id(stripped)
    file = places[0] / number[:2] / f"{number[2:]}.debug"
    file.parent.mkdir(parents=True, exist_ok=True)
    symbols.rename(file)


def place_cache(symbols, stripped, places):
    folder = places[1] / build_id(stripped)
    folder.mkdir(parents=True)
    symbols.rename(folder / "debuginfo")


def place_link(symbols, stripped, _places):
    folder = stripped.parent / ".debug"
    folder.mkdir()
    symbols.rename(folder / "staticIoc.debug")
    run("objcopy", f"--add-gnu-debuglink={folder / 'staticIoc.debug'}", stripped)


PLACES = [place_site, place_cache, place_link]


def probes(ioc, program):
    """The addresses in the program's file at which the code of the process is another one than in the file."""
    found, data = [], program.read_bytes()
    with open(f"/proc/{ioc.pid}/maps") as maps, open(f"/proc/{ioc.pid}/mem", "rb") as memory:
        for line in maps:
            words = line.split()
            if "x" not in words[1] or words[-1] != str(program):
                continue
            (begin, end), offset = (int(n, 16) for n in words[0].split("-")), int(words[2], 16)
            memory.seek(begin)
            code = memory.read(min(end - begin, len(data) - offset))
            if code != data[offset:offset + len(code)]:
                found += [offset + i for i, (a, b) in enumerate(zip(code, data[offset:])) if a != b]
    return found


DATABASE = db.READY + db.chain("C", 5) + db.chain("S", 5, SCAN=".1 second") + db.record("ao", "AO")


def use_the_ioc(ioc):
    """Lets records process by puts and scans. The IOC lives on, and its records count right."""
    before = int(ioc.get("C4"))
    for i in range(N):
        ca.pv(f"{ioc.prefix}C0.PROC").put(1, wait=bool(i % 2), timeout=60)
    assert int(ioc.get("C4")) == before + N
    start = ioc.get("S4")
    until(lambda: ioc.get("S4") > start + 5, 30, "scans")
    assert ioc.running, ioc.process.output()


def test_right_symbols(program, new_ioc, monitor, places, tmp_path):
    """For comparison: with the right symbols the IOC is watched, and its code has probes."""
    whole, stripped = program
    symbols = tmp_path / "symbols"
    run("objcopy", "--only-keep-debug", whole, symbols)
    assert change_symbols(symbols, lambda functions: {"dbProcess": functions["dbProcess"]})
    place_site(symbols, stripped, places)
    ioc = new_ioc(DATABASE, kind="latencyIoc", program=stripped).start()
    monitor.wait_ioc(ioc, records=len(DATABASE.splitlines()))
    assert probes(ioc, stripped)
    use_the_ioc(ioc)


@pytest.mark.parametrize("place", PLACES)
def test_symbols_of_another_build(place, program, new_ioc, monitor, places, tmp_path):
    """The file has another build-id, and its functions lie elsewhere. It is not used, wherever it is."""
    whole, stripped = program
    symbols, other = tmp_path / "symbols", tmp_path / "other"
    set_build_id(whole, other, os.urandom(20))
    run("objcopy", "--only-keep-debug", other, symbols)
    change_symbols(symbols, exchanged)
    place(symbols, stripped, places)
    ioc = new_ioc(DATABASE, kind="latencyIoc", program=stripped).start()
    wait_note(monitor, ioc, "stripped, no symbols")
    use_the_ioc(ioc)
    assert not probes(ioc, stripped) and monitor.records(ioc.name) == {}
    assert monitor.iocs()[ioc.pid][3] == "off"


@pytest.mark.parametrize("place", PLACES)
def test_addresses_in_the_midst_of_functions(place, program, new_ioc, monitor, places, tmp_path):
    """The file has the build-id of the program, but its functions lie elsewhere. A probe would be in the midst of an instruction."""
    whole, stripped = program
    symbols = tmp_path / "symbols"
    run("objcopy", "--only-keep-debug", whole, symbols)
    assert len(change_symbols(symbols, shifted)) > 1000
    place(symbols, stripped, places)
    ioc = new_ioc(DATABASE, kind="latencyIoc", program=stripped).start()
    until(lambda: "stripped, and the symbols of build-id" in "\n".join(monitor.command("ebpfMonIocs")), 20,
          lambda: note_of(monitor, ioc))
    use_the_ioc(ioc)
    assert not probes(ioc, stripped) and monitor.records(ioc.name) == {}


def test_another_function(program, new_ioc, monitor, places, tmp_path):
    """The file has the build-id of the program, and dbScanUnlock is the begin of another function. The first hits show it: all
    probes are taken off, and the note says why."""
    whole, stripped = program
    symbols = tmp_path / "symbols"
    run("objcopy", "--only-keep-debug", whole, symbols)
    change_symbols(symbols, exchanged)
    place_site(symbols, stripped, places)
    ioc = new_ioc(DATABASE, kind="latencyIoc", program=stripped).start()
    wait_note(monitor, ioc, "not watched: the symbols are not", 30)
    until(lambda: not probes(ioc, stripped), 10, lambda: probes(ioc, stripped))
    use_the_ioc(ioc)
    assert monitor.iocs()[ioc.pid][3] == "off" and not probes(ioc, stripped)
    wrong = {n: c for n, c in monitor.records(ioc.name).items() if c.count and "atleast" not in c.flags}
    assert not wrong, wrong
    monitor.wait_state("Degraded")
