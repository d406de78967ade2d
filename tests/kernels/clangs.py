# SPDX-License-Identifier: BSD-3-Clause
"""Builds the eBPF programs with each release of clang, and loads them on other kernels: each kernel boots once in an
emulated machine, which loads the programs of all of them (clangs.sh, loadPrograms.c).

  python -m tests.kernels.clangs [-c NUMBER]... [KERNEL...]    NUMBER: such as 19; KERNEL: such as bookworm-security

It needs what run.py needs (tools/clangs.sh). Without arguments it takes all, but no kernel twice that only boots with
other parameters. It records the results in tests/results, and writes the table in documentation/develop/tried.md. The
exit code is 1 if programs were refused or not built, and 3 if a release or a kernel cannot be had, and all others were
right.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from tests.harness import bpf, clangs, debian, paths, tables

from . import run
from .machines import X86, Unavailable

LOADER = paths.TESTS / "kernels" / f"O.{paths.ARCH}" / "loadPrograms"


def say(text):
    print(text)
    sys.stdout.flush()


def find(number):
    """This release of clang; None: it cannot be had."""
    have = clangs.installed()
    try:
        if number not in have:
            clangs.fetch(number)
            have = clangs.installed()
    except debian.Unavailable as why:
        say(f"clang {number}: not to be had: {why}")
    return have.get(number)


def stack(folder):
    """Bytes of stack that the deepest program needs."""
    objects = map(bpf.Object, folder.glob("ebpfMon*Bpf.o.bpf"))
    return max(o.deepest(p)[0] for o in objects for p in o.programs())


def initramfs(where, machine, cache, built):
    """built: release → folder with its library."""
    tree = run.newTree(where, machine, cache, "clangs.sh")
    run.addProgram(tree, machine, LOADER)
    shutil.copy(run.HERE / "queries.json", tree / "m")
    for clang, folder in built.items():
        (tree / "m" / f"clang-{clang.number}").mkdir()
        for _, name in clangs.PARTS:
            subprocess.run(["strip", "--strip-debug", "-o", tree / "m" / f"clang-{clang.number}" / name, folder / name],
                           check=True)
    return run.pack(tree)


def judge(said, number):
    """What a kernel said to the programs of a release: refused programs and why. []: it took all."""
    lines = said.get(f"clang-{number}", "").splitlines()
    if said.get(f"exit clang-{number}") == "0" and lines and all(li.startswith("yes ") for li in lines):
        return []
    return [li for li in lines if not li.startswith("yes ")] or ["no answer"]


def record(built, kernel, said, refused):
    """Adds a column to the rows of these releases."""
    rows = tables.load("clangs")
    for clang, folder in built.items():
        row = rows.get(str(clang.number), {})
        of = row.get("kernels", {}) if row.get("version") == clang.version else {}
        of[kernel.name] = {"kernel": said["uname"], "date": tables.today(), "refused": refused[clang]}
        rows[str(clang.number)] = {"version": clang.version, "stack": stack(folder), "kernels": of}
    tables.record("clangs", rows)


def tryKernel(machine, kernel, cache, image, built):
    """Returns the number of releases whose programs it did not take all."""
    began = time.monotonic()
    log = cache / f"{kernel.name}-clangs.log"
    run.boot(machine, run.fetch(cache, kernel, machine), image, log, f" {kernel.append}")
    said = run.answers(log)
    refused = {clang: judge(said, clang.number) for clang in built}
    bad = [c for c in built if refused[c]]
    say(f"{kernel.name:22} {said.get('uname', '?'):28} takes the programs of {len(built) - len(bad)} of {len(built)}, "
        f"{time.monotonic() - began:.0f} s: {log}")
    for clang in bad:
        for line in refused[clang]:
            say(f"  clang {clang.version}: {line}")
    if "uname" in said:
        record(built, kernel, said, refused)
    return len(bad)


def main():
    machine = X86()
    known = {k.name: k for k in machine.kernels}
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("-c", "--clang", type=int, action="append", choices=clangs.KNOWN)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help=", ".join(known))
    args = parser.parse_args()
    if set(args.kernels) - set(known):
        run.die(f"KERNEL is one of {', '.join(known)}")
    numbers = args.clang or clangs.KNOWN
    built, failed = {}, 0
    for number in numbers:
        clang, began = find(number), time.monotonic()
        try:
            if clang:
                built[clang] = clangs.build(clang)
                need = stack(built[clang])
                failed += need > bpf.LIMIT
                say(f"clang {clang.version:8} built, {need} bytes of stack, {time.monotonic() - began:.0f} s")
        except clangs.Failed as why:
            say(why)
            failed += 1
    cache = paths.CACHE / "kernels"
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as tmp:
        image = initramfs(pathlib.Path(tmp), machine, cache, built)
        for kernel in [known[n] for n in args.kernels] or [k for k in machine.kernels if not k.append]:
            failed += tryKernel(machine, kernel, cache, image, built)
    say(f"clangs: {failed} not as expected" if failed else "clangs: all as expected")
    return 1 if failed else run.UNAVAILABLE if len(built) < len(numbers) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (debian.Unavailable, Unavailable) as why:
        print(f"clangs: {why}", file=sys.stderr)
        sys.exit(run.UNAVAILABLE)
