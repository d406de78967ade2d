# SPDX-License-Identifier: BSD-3-Clause
"""Unpacks packages of Debian, of any suite and architecture, without installing them. Each suite has an apt of its own
in the cache, so nothing of this machine changes. This command unpacks packages with all that they depend on:

  python -m tests.harness.debian [-s SUITE] ARCHITECTURE FOLDER PACKAGE...

The default of SUITE is the release of this machine.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CACHE = pathlib.Path(os.environ.get("EBPFMON_CACHE") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "ebpfmon")


class Unavailable(Exception):
    """The packages cannot be fetched on this machine."""


def release():
    """The name of the Debian release of this machine; "" if it is not Debian."""
    found = re.search(r"(?m)^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text())
    return found.group(1) if found else ""


def archives():
    """The URIs of Debian's archive and of its security archive on this machine."""
    entries = []
    for f in [pathlib.Path("/etc/apt/sources.list"), *pathlib.Path("/etc/apt/sources.list.d").glob("*")]:
        text = f.read_text() if f.is_file() else ""
        if f.suffix == ".sources":
            for stanza in re.split(r"\n\s*\n", text):
                field = dict(re.findall(r"(?m)^(\w[\w-]*):[ \t]*(.*)$", stanza))
                entries += [(u, s) for u in field.get("URIs", "").split() for s in field.get("Suites", "").split()]
        else:
            entries += re.findall(r"(?m)^deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)", text)
    main = [u for u, s in entries if s == release()]
    security = [u for u, s in entries if s == f"{release()}-security"]
    if not main or not security:
        raise Unavailable(f"no URIs for {release()} and {release()}-security in apt's sources: is this a Debian?")
    return main[0], security[0]


class Apt:
    """A separate apt for one suite and architecture (None: that of this machine)."""

    def __init__(self, cache, suite, architecture=None):
        self.dir = cache / "apt" / (f"{suite}-{architecture}" if architecture else suite)
        for d in ("lists/partial", "cache/archives/partial", "parts"):
            (self.dir / d).mkdir(parents=True, exist_ok=True)
        main, security = archives()
        (self.dir / "sources.list").write_text(
            "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
            f"{security if suite.endswith('-security') else main} {suite} main\n")
        options = {
            "Dir::State::Lists": self.dir / "lists", "Dir::Cache": self.dir / "cache",
            "Dir::Etc::SourceList": self.dir / "sources.list", "Dir::Etc::SourceParts": self.dir / "parts",
            "Dir::State::status": "/dev/null", "Acquire::Languages": "none", "Acquire::Retries": "3",
            "APT::Sandbox::User": "root"}
        if architecture:
            options |= {"APT::Architecture": architecture, "APT::Architectures": architecture}
        self.options = [o for k, v in options.items() for o in ("-o", f"{k}={v}")]

    def run(self, tool, *args, cwd=None):
        r = subprocess.run([tool, *self.options, *args], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True)
        if r.returncode:
            raise Unavailable(f"{tool} {args[0]}: {r.stderr.strip()[-400:]}")
        return r.stdout

    def update(self):
        self.run("apt-get", "-o", "APT::Update::Error-Mode=any", "update")

    def depends(self, package, pattern):
        return re.search(rf"Depends: ({pattern}\S*)", self.run("apt-cache", "depends", package))

    def unpack(self, folder, packages, alone=False):
        """Unpacks packages into a folder, with all that they depend on or "alone"."""
        with tempfile.TemporaryDirectory(dir=self.dir) as tmp:
            if alone:
                self.run("apt-get", "download", *packages, cwd=tmp)
            else:
                self.run("apt-get", "install", "--yes", "--no-install-recommends", "--download-only",
                         "-o", f"Dir::Cache::archives={tmp}", *packages)
            for deb in sorted(pathlib.Path(tmp).glob("*.deb")):
                tar = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
                # a folder may be a link here, as /lib is
                subprocess.run(["tar", "x", "--keep-directory-symlink", "--no-same-owner", "-C", folder], stdin=tar.stdout,
                               check=True)
                if tar.wait():
                    raise Unavailable(f"{deb.name} cannot be unpacked")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-s", "--suite", default=release())
    parser.add_argument("architecture")
    parser.add_argument("folder")
    parser.add_argument("packages", nargs="+")
    args = parser.parse_args()
    apt = Apt(CACHE, args.suite, args.architecture)
    apt.update()
    folder = pathlib.Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    apt.unpack(folder, args.packages)
    for link in folder.rglob("*"):  # an absolute one leads out of the folder
        if link.is_symlink() and os.readlink(link).startswith("/"):
            to = os.path.relpath(f"{folder}{os.readlink(link)}", link.parent)
            link.unlink()
            link.symlink_to(to)


if __name__ == "__main__":
    try:
        main()
    except Unavailable as why:
        sys.exit(str(why))
