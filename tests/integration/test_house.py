# SPDX-License-Identifier: BSD-3-Clause
"""The sources are as documentation/develop/ARCHITECTURE.md and CONTRIBUTING.md say: who includes whom, what exists once in
a process, how long files and functions are, and which names there are. test_documents.py compares the pages with them."""
import ctypes
import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.harness import paths

SUP = paths.TOP / "ebpfMonSup"
BPF = paths.TOP / "bpf"
DEVELOP = paths.TOP / "documentation" / "develop"
BUILT = re.compile(r"^O\.")
LINES_MAX, FUNCTION_MAX, COLUMNS_MAX = 1000, 60, 120


# Files of ebpfMonSup with a variable that can change: what exists once in a process. A comment at each says why. Base
# gives no context to device support, commands, hooks and signal handlers, and it has one database in a process; the
# kernel part, the list of threads, our user namespace, and readers that were abandoned belong to the process, too.
ONCE = """
access/client.c access/guard.c access/operators.c access/pvaClient.cpp common/clock.c common/worker.c health/hangs.c
host/foreign.c host/memory.c host/procRead.c model/ops.c model/published.c module/modules.c probe/closer.c probe/kernelLoad.c
probe/libbpfText.c monitor/root.c record/drvEbpfMon.c record/filterSub.c record/processSignals.c record/pvScan.c
trace/span.c
""".split()
# Rooms that know neither eBPF nor the kernel part.
PLAIN = ("common", "model", "rules", "search", "export", "record", "access")


def table(page, header):
    """The rows of the table with this header: lists of cells."""
    block = re.search(rf"(?m)^{re.escape(header)}\n\|[-:| ]+\|\n((?:\|.*\n)+)", (DEVELOP / page).read_text()).group(1)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]


def sources(*endings, folders=("ebpfMonSup", "ebpfMonModules", "ebpfMonHistory", "ebpfMonTop", "ebpfMonApp", "bpf", "tests", "tools")):
    for folder in folders:
        for path in sorted((paths.TOP / folder).rglob("*")):
            here = path.relative_to(paths.TOP)
            if path.suffix in endings and path.is_file() and not any(
                    BUILT.match(part) or part in ("corpus", "__pycache__") for part in here.parts):
                yield path


def includes(path):
    return re.findall(r'(?m)^#include "([^"]+)"', path.read_text())


def room_of(name):
    """The room of a header or a source, from its path below ebpfMonSup. "": none."""
    return str(Path(name).parent) if "/" in name else ""


def test_rooms_include_only_lower_rooms():
    """Each room is in the table of floors, and includes headers of lower floors only."""
    floors = {room: int(floor) for floor, rooms, _, _ in table("ARCHITECTURE.md", "| floor | room | what it is about | page |")
              for room in re.findall(r"`([^`]+)`", rooms)}
    found = set()
    for path in sources(".c", ".h", ".cpp", folders=["ebpfMonSup"]):
        name = str(path.relative_to(SUP))
        room = room_of(name)
        if not room:
            continue
        found.add(room)
        for header in includes(path):
            other = room_of(header)
            assert not other or other == room or floors[other] < floors[room], (name, header)
            # bpf/ebpfMonLog2.h is arithmetic; model/ has constants of events that people read
            assert not (room.split("/")[0] in PLAIN and re.fullmatch(r"ebpfMon(Table|Packet|Query|Device|Base)\.h", header)), (
                name, header)
    assert found == set(floors)


def test_no_circle_of_includes():
    """A unit is NAME.c with NAME.h. No unit includes itself by way of others."""
    units = {}
    for path in sources(".c", ".h", ".cpp", folders=["ebpfMonSup"]):
        unit = re.sub(r"\.(c|h|cpp)$", "", str(path.relative_to(SUP)))
        units.setdefault(unit, set()).update(re.sub(r"\.h$", "", name) for name in includes(path))
    for path in sources(".c", ".h", folders=["bpf"]):
        units.setdefault(bpf_unit(path.relative_to(BPF)), set()).update(bpf_unit(name) for name in includes(path))
    done, way = set(), []

    def enter(unit):
        assert unit not in way, " > ".join([*way[way.index(unit):], unit])
        if unit in done:
            return
        way.append(unit)
        for other in sorted(units[unit] - {unit}):
            if other in units:
                enter(other)
        way.pop()
        done.add(unit)

    for unit in sorted(units):
        enter(unit)


def test_modules_link_what_they_include():
    """The core includes no module. A module includes the core, shared/, and the modules that its Makefile links; so it can be left out
    where nobody links it."""
    folder = paths.TOP / "ebpfMonModules"
    modules = {path.parent.name for path in folder.glob("*/Makefile")}
    needs = {"": set()}
    for module in modules:
        lines = re.findall(r"(?m)^LIB_LIBS \+= (.*)$", (folder / module / "Makefile").read_text())
        needs[module] = {name.removeprefix("ebpfMon").lower() for name in " ".join(lines).split()} | {module, "shared"}
    for path in sources(".c", ".h", ".cpp", folders=["ebpfMonSup", "ebpfMonModules"]):
        module = path.parent.name if folder in path.parents else ""
        used = {header.split("/")[0] for header in includes(path) if "/" in header} & modules
        assert used <= needs[module], (str(path), used - needs[module])


def bpf_unit(name):
    """The unit of a file of the kernel part, from its path below bpf/. Headers of contract/ are included without a room."""
    name = str(name)
    return "bpf/" + re.sub(r"(\.bpf)?\.[ch]$", "", name if "/" in name else f"contract/{name}")


def bpf_calls():
    """The calls from one unit of the kernel part to another: pairs of units. An object file tells what it defines, and what not."""
    places = {path.name.removesuffix(".bpf.c"): bpf_unit(path.relative_to(BPF)) for path in sources(".c", folders=["bpf"])}
    defines, needs = {}, {}
    for name, unit in places.items():
        built = paths.TOP.glob(f"ebpfMon*/**/O.{os.environ.get('EPICS_HOST_ARCH', 'linux-x86_64')}/{name}.bpf.o")
        path = max(built, key=lambda p: p.stat().st_mtime)  # an older one is of before it moved
        for line in subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, check=True).stdout.splitlines():
            words = line.split()
            if len(words) == 8 and words[7].startswith("ebpfmon_"):
                if words[6] == "UND":
                    needs.setdefault(unit, set()).add(words[7])
                elif words[3] == "FUNC":
                    defines[words[7]] = unit
    return {(unit, defines[name]) for unit, names in needs.items() for name in names}


def test_rooms_of_the_kernel_part():
    """Each room includes and calls only rooms on lower floors, also by functions that the verifier checks by themselves: a declaration
    in a header hides no arrow up."""
    floors = {room: int(floor) for floor, rooms, _, _ in
              table("probes.md", "| floor | room of `bpf/` | what it is about | page |")
              for room in re.findall(r"`([^`]+)`", rooms)}
    used = {(bpf_unit(path.relative_to(BPF)), bpf_unit(name)) for path in sources(".c", ".h", folders=["bpf"])
            for name in includes(path) if not name.startswith("vmlinux")}
    assert {path.parent.name for path in sources(".c", ".h", folders=["bpf"])} == set(floors)
    for user, other in used | bpf_calls():
        above, below = user.split("/")[1], other.split("/")[1]
        assert above == below or floors[below] < floors[above], (user, other)


def test_what_exists_once():
    """No other file has a variable that can change."""
    found = set()
    places = {path.stem: str(path.relative_to(SUP)) for path in sources(".c", ".cpp", folders=["ebpfMonSup"])}
    for path in SUP.glob(f"O.{os.environ.get('EPICS_HOST_ARCH', 'linux-x86_64')}/*.o"):
        if path.name.endswith(".bpf.o") or path.stem not in places:
            continue
        for line in subprocess.run(["objdump", "-t", path], capture_output=True, text=True, check=True).stdout.splitlines():
            symbol = re.search(r"\s(\.(?:data|bss|tdata|tbss)\S*)\s+\S+\s+(?:\.hidden )?(\S+)$", line)
            # Base's own support tables, and what C++ adds, cannot be const
            if symbol and ".rel.ro" not in symbol[1] and not re.match(
                    r"\.|pvar_|dev[A-Z]|DW\.ref|_ZStL|drvEbpfMon$", symbol[2]):
                found.add(places[path.stem])
    assert found, "nothing is built"
    assert found == set(ONCE)


def test_threads_are_documented():
    """The tables of documentation/develop/threads.md have each thread that the code starts, and no other one."""
    found = set()
    for path in sources(".c", ".cpp", folders=["ebpfMonSup", "ebpfMonModules"]):
        found.update(re.findall(r'(?:WorkerStart\(|ThreadCreate\(|setname_np\(pthread_self\(\), |\.name = )"(ebpfMon\w+)"',
                                path.read_text()))
    rows = re.findall(r"(?m)^\| ((?:`ebpfMon\w+`(?:, )?)+) \|", (DEVELOP / "threads.md").read_text())
    assert found and found == set(re.findall(r"\w+", " ".join(rows)))


@pytest.mark.parametrize("ending", [".c", ".h", ".cpp", ".py", ".sh"])
def test_files_are_short(ending):
    long = {str(path): n for path in sources(ending) if (n := len(path.read_text().splitlines())) > LINES_MAX}
    assert not long


def test_lines_are_short():
    long = [f"{path}:{n}" for path in sources(".c", ".h", ".cpp") for n, line in enumerate(path.read_text().split("\n"), 1)
            if len(line) > COLUMNS_MAX and path.name != "layouts.h"]  # a line a layout, by tools/layout.sh
    assert not long


def test_functions_are_short():
    """A longer function has a comment that says why it is longer than others."""
    for path in sources(".c", ".h"):
        lines = path.read_text().split("\n")
        for end in (i for i, line in enumerate(lines) if line == "}"):
            begin = next((i for i in range(end, -1, -1) if lines[i] == "{"), None)
            if begin is None:
                continue
            while begin > 0 and lines[begin - 1] and not re.search(r"[;}/]$", lines[begin - 1]):
                begin -= 1
            comment = " ".join(lines[max(0, begin - 6):begin])
            assert end - begin + 1 <= FUNCTION_MAX or "onger" in comment, f"{path.name}: {lines[begin]} {end - begin + 1}"


def statics():
    """The static functions of the product: name → files."""
    found = {}
    for path in sources(".c", folders=["ebpfMonSup", "ebpfMonTop", "bpf"]):
        for name in re.findall(r"(?m)^static (?:__always_inline |__noinline )?[\w \*]*?\b(\w+)\([^;]*$", path.read_text()):
            found.setdefault(name, set()).add(path)
    return found


def test_names_of_functions():
    """In a room no two files have a static function of the same name, so a debugger, a profile and a search show the right
    one. None has the name of a function of the C library, or a name of one word, which does not say what is done to what."""
    library = ctypes.CDLL(None)
    for name, files in statics().items():
        rooms = [path.parent for path in files]
        assert len(rooms) == len(set(rooms)), (name, files)
        assert not hasattr(library, name), (name, files)
        assert re.search("[A-Z_]", name), (name, files)
