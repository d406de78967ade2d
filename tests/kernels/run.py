# SPDX-License-Identifier: BSD-3-Clause
"""Tries ebpfMon on other kernels. Each of Debian's cloud kernels boots in an emulated machine, which runs IOCs, clients
and the monitor (guest.sh). check.py checks what the machine prints.

  python -m tests.kernels.run [-v] [-s | -H | -r [-S SECONDS] [-l LEVELS] [-m MINUTES]] [-a MACHINE] [KERNEL...]

KERNEL: such as bookworm-security; default: all.

It needs QEMU for the machine (machines.py), busybox-static, and EPICS_BASE in the environment; for another machine than
this one also EPICS_HOST_ARCH and EBPFMON_BUILT (tools/kernels.sh sets all of them). It prints one line for each kernel
with the checks that failed, and a summary. The exit code is 1 if a check failed,
and 3 if nothing could be tried. Without -s it records the results in
tests/results, and writes the tables in documentation/develop/tried.md.
"""
import argparse
import fcntl
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import typing

from tests.harness import debian, loopback, paths, tables

from . import hold, realtime
from .check import NO_MARK, check, features
from .machines import MACHINES, Unavailable

HERE = paths.TESTS / "kernels"
SECONDS, LEVELS = 10, "trace,chains,counts"  # of the rounds of realtime.sh; a shorter trial is not recorded
BOOTS = 3  # an emulated kernel may fail before its init program runs, if the host is busy: that says nothing of ebpfMon
UNAVAILABLE = 3  # exit code: nothing was tried, because a kernel or a program cannot be had
SERVER_PORTS = 5064, 5070, 5072  # of the monitor and of both IOCs in the emulated machine (guest.sh)


def die(text):
    sys.exit(f"kernels: {text}")


# --- kernels ---------------------------------------------------------------------------------------------
def find_package(apt, kernel):
    """Returns the name of the package with the kernel. From 7.x on, linux-image-* only depends on this package."""
    apt.update()
    image = apt.depends(kernel.package, "linux-image-").group(1)
    binary = apt.depends(image, "linux-binary-")
    return binary.group(1) if binary else image


def fetch(cache, kernel, machine):
    """Returns the path of this kernel. Downloads it if it is not in the cache. Another run may do the same now."""
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return fetchLocked(cache, kernel, machine)


def fetchLocked(cache, kernel, machine):
    apt = debian.Apt(cache, kernel.suite, machine.debian)
    package = find_package(apt, kernel)
    vmlinuz = cache / f"{package}.vmlinuz"
    if not vmlinuz.exists():
        with tempfile.TemporaryDirectory(dir=cache) as tmp:
            apt.run("apt-get", "download", package, cwd=tmp)
            deb = next(pathlib.Path(tmp).glob("*.deb"))
            tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE, check=True).stdout
            data = subprocess.run(["tar", "xO", "--wildcards", "*/vmlinuz*"], input=tar, stdout=subprocess.PIPE,
                                  check=True).stdout
            part = vmlinuz.with_suffix(".part")
            part.write_bytes(data)
            part.rename(vmlinuz)
    return vmlinuz


# --- the machine -------------------------------------------------------------------------------------------------
def environment():
    """Returns the environment of EPICS programs, as a shell script for guest.sh."""
    settings = {**loopback.SETTINGS, "EPICS_CA_ADDR_LIST": " ".join(f"127.0.0.1:{p}" for p in SERVER_PORTS)}
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in settings.items())


# What runs in the machine, besides common.sh: its init program, the programs of Base, and files for /m.
class Work(typing.NamedTuple):
    init: str
    programs: tuple
    files: tuple
    check: typing.Callable


# How ebpfMon is in all ways, and what threads do to it that preempt each other.
USUAL = Work("guest.sh", (), ("monitor.cmd", "queries.json", "kernels.db", "pva.db"), check)
REALTIME = Work("realtime.sh", ("softIoc",), ("realtime.cmd", "realtime.json", "realtime.db", "realtimeThread.db",
                                              "realtimeScan.db"), realtime.check)
# How many instructions longer a real-time thread of an IOC takes. One CPU whose clock counts the instructions, one each
# ns: so no other load of this host changes the result.
HOLD = Work("hold.sh", ("softIoc",), ("hold.cmd",), hold.check)


def buildPreload(source, to):
    """Builds a library that an init program preloads."""
    base = paths.BASE / "include"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", f"-I{base}", f"-I{base}/os/Linux", f"-I{base}/compiler/gcc", "-w",
                    "-o", to, source], check=True)


def newTree(where, machine, cache, init):
    """Begins the file system of the machine, with busybox, common.sh and the init program. Returns its path."""
    tree = where / "root"
    (tree / "m").mkdir(parents=True)
    for d in ("bin", "proc", "sys", "dev", "tmp", "etc"):
        (tree / d).mkdir()
    shutil.copy(machine.busybox(cache), tree / "bin" / "busybox")
    shutil.copy(HERE / "common.sh", tree / "m")
    (tree / "m" / "loopback.sh").write_text(environment())
    shutil.copy(HERE / init, tree / "init")
    (tree / "init").chmod(0o755)
    return tree


def addProgram(tree, machine, program):
    """Copies a program to /m, and its libraries to where its loader looks."""
    if not program.exists():
        die(f"{program} is not there: build first")
    shutil.copy(program, tree / "m")
    for lib, place in machine.libraries(program).items():
        to = tree / place.lstrip("/")
        if not to.exists():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(lib, to)


def pack(tree):
    """Packs the file system. Returns the path of the initramfs."""
    busybox = shutil.which("busybox") or die("busybox is missing: apt-get install busybox-static")
    image = tree.parent / "initramfs.gz"
    names = "\n".join(str(p.relative_to(tree)) for p in sorted(tree.rglob("*")))
    with open(image, "wb") as out:
        cpio = subprocess.Popen([busybox, "cpio", "-o", "-H", "newc"], cwd=tree, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        gzip = subprocess.Popen(["gzip", "-1"], stdin=cpio.stdout, stdout=out)
        cpio.stdin.write(names.encode())
        cpio.stdin.close()
        if cpio.wait() or gzip.wait():
            die("the initramfs could not be packed")
    return image


def initramfs(where, machine, cache, work=USUAL):
    """Makes the file system of the machine for a work. Returns its path."""
    tree = newTree(where, machine, cache, work.init)
    softioc, *pva = ["softIocPVA", "pvput"] if machine.has_pva else ["softIoc"]
    for program in [paths.MONITOR, paths.LATENCY_IOC] + [
            paths.BASE_BIN / t for t in (softioc, "caget", "caput", *pva, *work.programs)]:
        addProgram(tree, machine, program)
    for f in (paths.DBD / "ebpfMon.dbd", paths.DB / "ebpfMon.db", paths.DB / "ebpfMonQuery.template",
              *(HERE / f for f in work.files), paths.TESTS / "ioc" / "latency.db", paths.LATENCY_DBD,
              *(paths.BASE / "dbd" / f"{p}.dbd" for p in (softioc, *work.programs))):
        shutil.copy(f, tree / "m")
    if work is REALTIME:
        buildPreload(HERE / "realtimeThreads.c", tree / "m" / "realtimeThreads.so")
    if work is HOLD:
        buildPreload(paths.TESTS / "bench" / "holdThread.c", tree / "m" / "holdThread.so")
        (tree / "m" / "hold.db").write_text(hold.database())
    return pack(tree)


def boot(machine, vmlinuz, image, log, more, more_seconds=0, cpus=("-smp", "2")):
    """Runs the machine until it ends, for machine.boot_seconds and more_seconds at most. QEMU emulates it, so it needs no /dev/kvm."""
    qemu = shutil.which(machine.qemu[0]) or die(f"QEMU is missing: {machine.qemu[0]}")
    with open(log, "wb") as out:
        try:
            subprocess.run([qemu, *machine.qemu[1:], *cpus, "-m", "1024", "-nodefaults", "-display", "none",
                            "-no-reboot", "-serial", "stdio", "-kernel", vmlinuz, "-initrd", image,
                            "-append", f"console={machine.console} quiet panic=-1 {machine.append}{more}"],
                           stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, timeout=machine.boot_seconds + more_seconds)
        except subprocess.TimeoutExpired:
            out.write(b"\n@@late\n")


def answers(log):
    """Returns the answers of guest.sh: name → the lines after the line @@NAME."""
    said, name = {}, "boot"
    for line in log.read_text(errors="replace").replace("\r", "").split("\n"):
        if line.startswith("@@"):
            name = line[2:]
            said[name] = []
        else:
            said.setdefault(name, []).append(line)
    return {k: "\n".join(v).strip() for k, v in said.items()}


class Trial(typing.NamedTuple):
    machine: object
    kernel: object
    work: Work
    start: bool
    recorded: bool  # whether the results go into tests/results, unless it only starts


def tryKernel(trial, cache, image, parameters, verbose, more_seconds):
    """Boots a kernel, prints and records what came out. Returns the number of checks that did not pass."""
    machine, kernel, work, start, recorded = trial
    began = time.monotonic()
    name = kernel.name if machine.debian is None else f"{kernel.name}-{machine.name}"
    log = cache / f"{name}-{work.init.removesuffix('.sh')}.log"  # gets the log when the run is over: another may be under way
    own = image.parent / log.name
    said = {}
    for _ in range(BOOTS):
        boot(machine, fetch(cache, kernel, machine), image, own, f" {kernel.append} {parameters} ", more_seconds,
             *([("-smp", "1", "-icount", "shift=0")] if work is HOLD else []))
        said = answers(own)
        if "uname" in said:
            break
    shutil.copy(own, log)
    results = work.check(said, start)
    bad = [r for r in results if not r[1] and not r[0].startswith(NO_MARK)]
    print(f"{name:22} {said.get('uname', '?'):28} {said.get('STATE', '?'):9} "
          f"{len(results) - len(bad)} of {len(results)} as expected, {time.monotonic() - began:.0f} s: {log}")
    for what, ok, text in results if verbose else [r for r in results if not r[1]]:
        print(f"  {'ok    ' if ok else 'not ok'} {what}{'' if ok else ': ' + text}")
    sys.stdout.flush()
    row = {"kernel": said.get("uname"), "date": tables.today(), "checks": {what: ok for what, ok, _ in results}}
    if work is HOLD and verbose:
        print(hold.table(said))
    if "uname" not in said or start or not recorded or work is HOLD:
        return len(bad)
    if work is REALTIME:
        tables.record("realtime", {name: {**row, "append": kernel.append}})
    else:
        tables.record("kernels", {name: {**row, "features": features(said)}})
    return len(bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("-v", "--verbose", action="store_true", help="print each check")
    parser.add_argument("-s", "--start", action="store_true",
                        help="only start the monitor, to see if the verifier accepts its programs")
    parser.add_argument("-r", "--realtime", action="store_true",
                        help="only threads that preempt each other (realtime.sh)")
    parser.add_argument("-H", "--hold", action="store_true",
                        help="only how many instructions a real-time thread is held (hold.sh)")
    parser.add_argument("-S", "--seconds", type=int, default=SECONDS, help="with -r: length of each of its rounds")
    parser.add_argument("-l", "--levels", default=LEVELS, help="with -r: a round at each of these levels")
    parser.add_argument("-m", "--minutes", type=int, default=0,
                        help="with -r: rounds again and again for so long, with an IOC that starts anew")
    parser.add_argument("-a", "--machine", choices=MACHINES, default="x86_64")
    parser.add_argument("kernels", nargs="*", metavar="KERNEL")
    args = parser.parse_args()
    machine = MACHINES[args.machine]()
    cache = paths.CACHE / "kernels"
    cache.mkdir(parents=True, exist_ok=True)
    known = {k.name: k for k in machine.kernels}
    unknown = [n for n in args.kernels if n not in known]
    if unknown:
        die(f"no kernel {', '.join(unknown)}: {', '.join(known)} are known")
    only = [REALTIME] if args.realtime else [HOLD] if args.hold else []
    works = only or ([USUAL] if args.start or machine.debian else [USUAL, REALTIME])
    parameters = f"{'start-only' if args.start else ''} seconds={args.seconds} levels={args.levels} oops=panic"
    if args.minutes:
        parameters += f" minutes={args.minutes}"
    recorded = args.levels == LEVELS and args.seconds >= SECONDS
    failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        for work in works:
            image = initramfs(pathlib.Path(tmp) / work.init, machine, cache, work)
            for kernel in [known[n] for n in args.kernels or known]:
                failed += tryKernel(Trial(machine, kernel, work, args.start, recorded), cache, image, parameters, args.verbose,
                                    60 * args.minutes)
    print(f"kernels: {failed} not as expected" if failed else "kernels: all as expected")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (debian.Unavailable, Unavailable) as why:
        print(f"kernels: {why}", file=sys.stderr)
        sys.exit(UNAVAILABLE)
