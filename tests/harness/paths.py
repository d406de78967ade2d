# SPDX-License-Identifier: BSD-3-Clause
"""Paths in this tree, in EPICS Base, and of the cache."""
import os
import socket
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
TESTS = TOP / "tests"
BUILT = Path(os.environ.get("EBPFMON_BUILT") or TOP)  # a copy of this tree that was built for another machine: tools/cross.sh
CACHE = Path(os.environ.get("EBPFMON_CACHE") or
             Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ebpfmon")
HOST = socket.gethostname()

BASE = Path(os.environ["EPICS_BASE"]).resolve()  # set by the scripts in tools/
ARCH = os.environ.get("EPICS_HOST_ARCH") or subprocess.check_output(
    ["perl", str(BASE / "lib/perl/EpicsHostArch.pl")], text=True).strip()
BASE_BIN = BASE / "bin" / ARCH

MONITOR = BUILT / "bin" / ARCH / "ebpfMon"
SYMBOLS = TOP / "bin" / ARCH / "ebpfMonSymbols"
MONITOR_BOOT = TOP / "iocBoot" / "iocEbpfMon"
DBD = BUILT / "dbd"
DB = BUILT / "db"
# The PVs of each module, without those that are loaded for one IOC or one record.
MODULE_DBS = sorted(f"{p.stem}.db" for p in TOP.glob("ebpfMonModules/*/*.substitutions") if p.stem.lower() == f"ebpfmon{p.parent.name}")
BENCH_BIN = TESTS / "bench" / f"O.{ARCH}"
LATENCY_IOC = BUILT / "tests" / "ioc" / f"O.{ARCH}" / "latencyIoc"
HOSTILE = TESTS / "ioc" / f"O.{ARCH}" / "hostile"
LATENCY_DBD = BUILT / "tests" / "ioc" / "O.Common" / "latencyIoc.dbd"
STATIC_IOC = TESTS / "ioc" / f"O.{ARCH}" / "staticIoc"
ROADS_IOC = TESTS / "ioc" / f"O.{ARCH}" / "roadsIoc"
ROADS_DBD = TESTS / "ioc" / "O.Common" / "roadsIoc.dbd"
PROGRAMS = TESTS / "programs"
# StreamDevice, built against asyn and our Base, if this machine has it: CONTRIBUTING.md
STREAM = Path(os.environ.get("EBPFMON_STREAM") or CACHE / "StreamDevice")
STREAM_IOC = STREAM / "bin" / ARCH / "streamApp"
ASYN = CACHE / "modules" / "asyn"
PVXS_TLS = Path(os.environ.get("EBPFMON_PVXS_TLS") or CACHE / "pvxs-tls")  # the same of branch tls of pvxs
CA_GATEWAY = Path(os.environ.get("EBPFMON_CA_GATEWAY") or CACHE / "modules" / "ca-gateway") / "bin" / ARCH / "gateway"
