# SPDX-License-Identifier: BSD-3-Clause
"""What the kernel tells about processes and BPF objects. None of it comes from ebpfMon."""
import contextlib
import json
import os
import re
import subprocess
from pathlib import Path

from .wait import until

ENVIRONMENT = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}


def _show(kind):
    def show():
        """None if bpftool gave up, as it does when one of the links of another monitor goes while it lists them."""
        done = subprocess.run(["bpftool", "-j", kind, "show"], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        return done if done.returncode == 0 else None

    return json.loads(until(show, 5, f"bpftool lists each {kind}").stdout or "[]")


def held(pid):
    """The BPF objects of a process: those that it has open, and the links that run its programs: {(kind, id)}."""
    found = set()
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            lines = path.read_text().splitlines()
        except FileNotFoundError:  # closed meanwhile
            continue
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        for kind in ("prog", "map", "link"):
            if f"{kind}_id" in fields and (kind == "link" or "link_id" not in fields):
                found.add((kind, int(fields[f"{kind}_id"])))
    return found | {("link", link["id"]) for link in _show("link") if ("prog", link.get("prog_id")) in found}


def count_programs(pid, name):
    """How many programs of this name the process has."""
    ours = held(pid)
    return sum(("prog", program["id"]) in ours and program.get("name") == name for program in _show("prog"))


def remove_elements(pid, name, wanted):
    """Removes elements from a table of the process: those for whose keys (bytes) wanted(key) is true. Returns their number."""
    ours, count = held(pid), 0
    for table in (t["id"] for t in _show("map") if ("map", t["id"]) in ours and t.get("name") == name):
        dump = subprocess.run(["bpftool", "-j", "map", "dump", "id", str(table)], stdout=subprocess.PIPE, env=ENVIRONMENT, check=True)
        for key in ([int(byte, 16) for byte in item["key"]] for item in json.loads(dump.stdout)):
            if wanted(bytes(key)):
                subprocess.run(["bpftool", "map", "delete", "id", str(table), "key", *map(str, key)], env=ENVIRONMENT, check=True)
                count += 1
    return count


def helpers(pid, name):
    """The functions of the kernel that the programs of this name call, as the process has them loaded. bpftool shows the whole
    name, or its first 15 characters."""
    ours = held(pid)
    programs = [p["id"] for p in _show("prog") if ("prog", p["id"]) in ours and p.get("name") in (name, name[:15])]
    dumps = [subprocess.run(["bpftool", "prog", "dump", "xlated", "id", str(p)], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT,
                            check=True).stdout for p in programs]
    return {call for dump in dumps for call in re.findall(r"call (\w+)#", dump)}


def in_kernel():
    """All BPF objects of the kernel."""
    return {(kind, item["id"]) for kind in ("prog", "map", "link") for item in _show(kind)}


def nothing_left(objects, seconds=10):
    """Waits until no object is left. The kernel frees BPF objects in the background, after the process has ended."""
    until(lambda: not in_kernel() & objects, seconds,
          lambda: f"BPF objects left behind: {sorted(in_kernel() & objects)}")


def resident(pid):
    """Bytes of memory."""
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def own_memory(pid):
    """Bytes of memory, without files and without memory shared with the kernel, because rings take memory as they are
    used."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"RssAnon:\s*(\d+) kB", text)[1]) * 1024


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid):
    """The ids of all threads."""
    return {int(t) for t in os.listdir(f"/proc/{pid}/task")}


def threads_named(pid, name):
    """How many threads have this name."""
    n = 0
    for thread in threads(pid):
        try:
            n += Path(f"/proc/{pid}/task/{thread}/comm").read_text().strip() == name
        except OSError:
            continue  # it ended
    return n


def thread_states(pid):
    """Thread id → its state: R runs, S sleeps, D cannot be interrupted, T stopped, Z has ended."""
    found = {}
    for thread in threads(pid):
        try:
            text = Path(f"/proc/{pid}/task/{thread}/stat").read_text()
        except OSError:
            continue  # it ended
        found[thread] = text.rsplit(")", 1)[1].split()[0]
    return found


def changed_code(pid):
    """The places where the code of a process differs from its files: [(file, offset, byte in the file, byte in
    memory)]. It compares every executable mapping of a file byte by byte. map_files leads to the mapped file, also if
    its path now has another file."""
    found = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            fields = line.split(None, 5)
            if "x" not in fields[1] or fields[4] == "0":
                continue
            begin, end = (int(x, 16) for x in fields[0].split("-"))
            offset = int(fields[2], 16)
            with open(f"/proc/{pid}/map_files/{fields[0]}", "rb") as f:
                f.seek(offset)
                in_file = f.read(end - begin)
            memory.seek(begin)
            now = memory.read(len(in_file))
            assert len(now) == len(in_file), f"{len(now)} of {len(in_file)} bytes of {fields[5]}"
            if now != in_file:
                found += [(fields[5], offset + i, a, b) for i, (a, b) in enumerate(zip(in_file, now)) if a != b]
    return found


def restore_code(pid):
    """Writes the bytes of its files over what differs, as somebody may who does not know of probes."""
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for file, at, byte, _ in changed_code(pid):
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                fields = line.split(None, 5)
                begin, end = (int(x, 16) for x in fields[0].split("-"))
                if fields[5:] == [file] and "x" in fields[1] and 0 <= at - int(fields[2], 16) < end - begin:
                    memory.seek(begin + at - int(fields[2], 16))
                    memory.write(bytes([byte]))


LEAK = re.compile(r"\[ *([\d.]+)\] uprobe: .*:(\d+) failed to unregister, leaking uprobe")


def leaks():
    """The probes that the kernel could not remove (uprobe_unregister_nosync, kernel/events/uprobes.c): [(seconds since
    the start of the host, thread that tried)], the oldest first. Thread ids come again after some minutes."""
    text = subprocess.run(["dmesg"], stdout=subprocess.PIPE, text=True, errors="replace", check=True).stdout
    return [(float(m[1]), int(m[2])) for m in LEAK.finditer(text)]


GROUPS = (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max")


@contextlib.contextmanager
def out_of_memory(pid, limit):
    """The process may take so many bytes more; then the kernel ends it (OOM). None: no group of this kind can be made here."""
    for place, name in GROUPS:
        group = place / f"ebpfMonTest{os.getpid()}"
        if not (place / "cgroup.procs").exists():
            continue
        group.mkdir()
        try:
            if not (group / name).exists():
                continue
            (group / name).write_text(str(limit))
            (group / "cgroup.procs").write_text(str(pid))
            yield group
            until(lambda: not (group / "cgroup.procs").read_text(), 30, "it has ended")
            return
        finally:
            group.rmdir()
    yield None
