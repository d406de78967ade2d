# SPDX-License-Identifier: BSD-3-Clause
"""The monitor installed on a host and run as a service: files, unit, start, reload, watchdog, logs, end; ebpfMon
--check; the purpose of each capability. The package itself: test_package.py."""
import fnmatch
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness import ca, paths
from tests.harness.ioc import OURS
from tests.harness.service import HeldThread, Installed, Service, as_user, capability_set
from tests.harness.wait import stays_false, until

DB = """
record(calc, "$(P)READY") { field(SCAN, "1 second") field(CALC, "VAL+1") }
record(ao, "$(P)SET") {}
"""
BITS = {"CAP_DAC_READ_SEARCH": 2, "CAP_NET_RAW": 13, "CAP_SYS_PTRACE": 19, "CAP_PERFMON": 38, "CAP_BPF": 39}
GUIDE = (paths.TOP / "documentation" / "use" / "installation.md").read_text()
PROGRAM = OURS.replace("*", "program")  # the filter matches this name without the environment
has_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")


@pytest.fixture(scope="module")
def installed():
    place = Installed().install()
    with (place.etc / "site.cmd").open("a") as site:  # as a site adds its own lines
        site.write('\n< "$(TEST_SITE)"\n')
    yield place
    place.remove()


@pytest.fixture
def new_service(tmp_path, installed):
    made = []

    def new(**how):
        made.append(Service(tmp_path, installed, **how))
        return made[-1]

    yield new
    for service in made:
        service.discard()


def check(service, *wrap):
    """ebpfMon --check with the rights of this service: exit status, and subject → (verdict, text)."""
    run = subprocess.run([*wrap, *service.command_line[:-3], service.installed.program, "--check"], capture_output=True,
                         text=True, check=False)
    rows = {line[5:16].strip(): (line[:5].strip(), line[16:]) for line in run.stdout.splitlines()[:-1]}
    return run.returncode, rows


# --- files -----------------------------------------------------------------------------------------------
def test_configuration_is_kept():
    """A second installation does not change a file that the site has changed. It puts the new file beside it."""
    place = Installed().install()
    try:
        for f in ("environment", "site.cmd", "rules.json", "ebpfMon.acf", "../logrotate.d/ebpfmon"):
            assert (place.etc / f).is_file(), f
        (place.etc / "site.cmd").write_text("# ours\n")
        place.install()
        assert (place.etc / "site.cmd").read_text() == "# ours\n"
        assert "ebpfMonRules" in (place.etc / "site.cmd.new").read_text()
        assert not (place.etc / "environment.new").exists()
        left = subprocess.run(["grep", "-rlE", "@[a-z]+dir@", place.folder], capture_output=True, text=True, check=False)
        assert not left.stdout, "places that were not filled in"
    finally:
        place.remove()


def test_new_rule_of_logrotate():
    """A new rule does not go beside the old one, because logrotate would read both, and refuse. What an earlier version has left
    there is removed."""
    place = Installed().install()
    try:
        rules = place.etc.parent / "logrotate.d"
        (rules / "ebpfmon").write_text("# ours\n")
        (rules / "ebpfmon.new").write_text("# theirs\n")
        place.install()
        assert {f.name: f.read_text() for f in rules.iterdir()} == {"ebpfmon": "# ours\n"}
        new = place.etc / "ebpfmon.logrotate.new"
        assert "puts" in new.read_text()
        assert f"{rules}/ebpfmon stays as it is; the new one is {new}\n" in place.said
    finally:
        place.remove()


def test_client_and_pages(installed):
    """ebpfMonTop needs no EPICS on the host. A click in a display finds its script. The pictures are installed."""
    root = installed.program.parents[1]
    top = root / "bin" / "ebpfMonTop"
    assert subprocess.run([top, "-h"], capture_output=True, text=True, check=True, env={}).stdout.startswith("ebpfMonTop [-1]")
    libraries = subprocess.run(["ldd", top], capture_output=True, text=True, check=True, env={}).stdout
    assert re.search(r"=> \S+/lib/ebpfmon/libca\.so", libraries) and str(paths.BASE) not in libraries, libraries
    assert list(root.rglob("op/ebpfMonOpen.py")) and list(root.rglob("op/ebpfMon.bob"))
    assert list(root.rglob("documentation/pictures/demo.svg")) and list(root.rglob("documentation/use/tutorial.md"))


def test_archive_list(installed, tmp_path):
    """The names of the PVs to archive are those with the info tag, as siteFiles.py finds them."""
    subprocess.run([paths.TOP / "tools" / "siteFiles.py", "-o", tmp_path, "HOST:EBPF:"], capture_output=True, check=True)
    [listed] = installed.program.parents[1].rglob("ebpfMon.archive")
    assert sorted(listed.read_text().split()) == sorted((tmp_path / "names.txt").read_text().split())


def test_libraries(installed):
    """The program finds its libraries relative to its own place, wherever it is installed. All others are libraries of
    the system."""
    out = subprocess.run(["ldd", installed.program], capture_output=True, text=True, check=True, env={}).stdout
    own = re.findall(r"=> (\S+/lib/ebpfmon/\S+)", out)
    assert any("libebpfMon" in p for p in own) and any("libdbCore" in p for p in own), out
    assert str(paths.BASE) not in out and str(paths.TOP) not in out, out


def test_base_by_another_path(tmp_path):
    """EPICS_BASE with a link, ".." and a slash at its end names the same Base: its libraries are installed."""
    (tmp_path / "base").symlink_to(paths.BASE)
    place = Installed()
    try:
        place.install(EPICS_BASE=f"{tmp_path}/../{tmp_path.name}/base/")
        out = subprocess.run(["ldd", place.program], capture_output=True, text=True, check=True, env={}).stdout
        assert re.search(r"=> \S+/lib/ebpfmon/libdbCore", out) and "not found" not in out, out
    finally:
        place.remove()


def test_program_that_cannot_start(tmp_path):
    """A program that would not find its libraries does not replace the one that is installed. Here EPICS_BASE is not the
    Base with which it was built."""
    other = tmp_path / "base"
    (other / "lib" / paths.ARCH).mkdir(parents=True)
    (other / "lib" / "perl").symlink_to(paths.BASE / "lib" / "perl")
    for folder in ("bin", "configure", "startup"):
        (other / folder).symlink_to(paths.BASE / folder)
    place = Installed().install()
    try:
        place.program.write_text("the old one")
        with pytest.raises(subprocess.CalledProcessError) as refused:
            place.install(EPICS_BASE=other)
        assert re.search(r"nothing was installed.* libdbCore\.so.* build ebpfMon with this Base", refused.value.stderr)
        assert place.program.read_text() == "the old one"
        assert [f.name for f in (place.prefix / "lib").glob("ebpfmon*")] == ["ebpfmon"]
    finally:
        place.remove()


def test_options(installed, tmp_path):
    environ = {k: v for k, v in os.environ.items() if k != "EPICS_IOCSH_HISTFILE"}

    def run(*argv):
        return subprocess.run([installed.program, *argv], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=60, check=False, cwd=tmp_path, env=environ)

    version = re.findall(r"EBPFMON_(?:MAJOR|MINOR|PATCH)_VERSION = (\d+)",
                         (paths.TOP / "configure" / "CONFIG_EBPFMON_VERSION").read_text())
    assert run("--version").stdout.startswith(f"ebpfMon {'.'.join(version)}, ")
    assert f"ebpfmon ({'.'.join(version)}) " in (paths.TOP / "debian" / "changelog").read_text()
    usage = run("--help")
    assert usage.returncode == 0 and "--check" in usage.stdout
    wrong = run("--wrong")
    assert wrong.returncode == 2 and "Usage" in wrong.stderr
    assert run("--no-shell", "/nowhere/st.cmd").returncode == 1
    (tmp_path / "st.cmd").write_text("iocInit\n")  # without definitions of records it fails
    assert run("--no-shell", tmp_path / "st.cmd").returncode == 1
    assert [f.name for f in tmp_path.iterdir()] == ["st.cmd"]  # no history of the shell
    manual = (paths.TOP / "service" / "ebpfMon.1").read_text().replace("\\-", "-")
    for option in re.findall(r"(?m)^  -\w, (--[\w-]+)", usage.stdout):
        assert option in manual, option
    usage = subprocess.run([installed.program.parent / "ebpfMonTop", "-h"], capture_output=True, text=True, check=False)
    manual = (paths.TOP / "service" / "ebpfMonTop.1").read_text().replace("\\-", "-")
    assert usage.returncode == 0
    for option in re.findall(r"(?m)^  (-\w)", usage.stdout):
        assert option in manual, option


# --- the unit --------------------------------------------------------------------------------------------
@has_systemd
def test_unit(installed):
    """systemd finds nothing wrong in the unit. Its exposure is not higher than the guide says."""
    verify = subprocess.run(["systemd-analyze", "verify", installed.unit.path], capture_output=True, text=True, check=False)
    wrong = [l for l in verify.stderr.splitlines() if "ebpfmon" in l and "man ebpfMon(1)" not in l]
    assert not wrong, wrong
    said = float(re.search(r"exposure level.*?(\d\.\d)", GUIDE).group(1))
    figure = subprocess.run(["systemd-analyze", "security", "--offline=yes", installed.unit.path], capture_output=True,
                            text=True, check=False).stdout
    assert float(re.search(r"Overall exposure level[^:]*: (\d+\.\d+)", figure).group(1)) <= said, figure


# --- the service -----------------------------------------------------------------------------------------
def test_service(new_ioc, new_service):
    """The service runs as its own user, with exactly the capabilities of the unit, and watches an IOC of root."""
    ioc = new_ioc(DB).start()
    service = new_service().launch()
    service.manager.wait("READY=1")
    service.wait_ioc(ioc)
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    assert re.search(rf"(?m)^Uid:\s+{service.uid}\s+{service.uid}", status) and "NoNewPrivs:\t1" in status
    want = {BITS[c] for c in service.installed.unit.capabilities}
    assert capability_set(service.process.pid) == capability_set(service.process.pid, "CapBnd") == want
    ca.put(ioc.prefix + "SET", 7)
    service.wait_text("PUT_LAST", lambda t: f"{ioc.prefix}SET 0 -> 7" in t)
    log = service.logs / "puts.json"
    until(lambda: log.exists() and "\n" in log.read_text(), 10, "a line in the put log")
    assert json.loads(log.read_text().splitlines()[0])["pv"] == ioc.prefix + "SET"
    until(lambda: "STATUS=Running: " + service.text("STATE_MSG") in service.manager.messages, 30,
          lambda: service.manager.messages)  # other IOCs of the host come and go
    assert service.stop() == 0
    service.manager.wait("STOPPING=1")


def test_reload(installed, new_service):
    """Reload reads the rules file again. A file with a mistake is refused, and the old rules stay."""
    rules = installed.etc / "rules.json"
    before = rules.read_text()
    service = new_service().launch()
    try:
        service.manager.wait("READY=1")
        assert service.get("RULES_CNT") == 0
        rules.write_text('{"default": "deny", "rules": [{"name": "one", "pv": "X:*"}]}')
        service.reload()
        service.wait("RULES_CNT", lambda n: n == 1)
        service.manager.wait("READY=1", 2)
        order = [m.split("\n")[0] for m in service.manager.messages if m.startswith(("RELOADING", "READY"))]
        assert order == ["READY=1", "RELOADING=1", "READY=1"]
        stamp = next(m for m in service.manager.messages if m.startswith("RELOADING")).split("\n")[1]
        assert re.fullmatch(r"MONOTONIC_USEC=\d+", stamp)
        rules.write_text("{")
        service.reload()
        service.wait_text("RULES_MSG", lambda t: t.startswith("refused"))
        assert service.get("RULES_CNT") == 1 and service.process.running
    finally:
        rules.write_text(before)


def test_watchdog(new_service):
    """The service sends WATCHDOG=1. It stops when a thread of the monitor makes no progress, and starts again when this
    thread continues."""
    service = new_service(watchdog=60).launch()
    service.manager.wait("READY=1")
    service.manager.wait("WATCHDOG=1", 3)
    held = HeldThread(service.process.pid, "ebpfMonPublish")
    try:
        service.wait_text("STATE_MSG", lambda t: t.startswith("no progress: ebpfMonPublish"), 30)
        fed = service.manager.count("WATCHDOG=1")
        assert stays_false(lambda: service.manager.count("WATCHDOG=1") > fed, 3)
        assert any(m.startswith("STATUS=Degraded: no progress") for m in service.manager.messages)
    finally:
        held.release()
    service.manager.wait("WATCHDOG=1", fed + 1)


def test_watchdog_after_a_failed_start(new_service):
    """The service manager does not need to restart a monitor that could not start: its PVs exist and say why."""
    service = new_service(watchdog=60, without=["CAP_BPF"]).launch()
    service.wait_state("Failed")
    service.manager.wait("READY=1")
    service.manager.wait("WATCHDOG=1", service.manager.count("WATCHDOG=1") + 2)


def test_console(installed, new_ioc, new_service):
    """The console answers, "exit" leaves the service running, and other users may not connect."""
    ioc = new_ioc(DB).start()
    service = new_service().launch()
    service.wait_ioc(ioc)
    client = [installed.program, f"--console={service.run}/console"]

    def type_in(text, *wrap):
        return subprocess.run([*wrap, *client], input=text, capture_output=True, text=True, check=False)

    answer = type_in("ebpfMonIocs\nebpfMonLevel\nexit\nebpfMonReport\n")
    assert answer.returncode == 0 and f" {ioc.pid} " in answer.stdout and "failed" in answer.stdout, answer
    assert "state:" not in answer.stdout.lower().split("failed")[1], "nothing after exit"
    assert ioc.name in type_in("ebpfMonIocs\n", *as_user(service.uid, [])).stdout, "without exit, as the service's user"
    report = type_in("ebpfMonReport\nebpfMonLogShow\n").stdout
    assert report.count("logs: ") == 2 and "OTLP" in report and "settings: " in report, report
    assert str(ioc.pid) not in type_in("ebpfMonIocs\n" + "x" * 2000 + "\n").stdout.split("a line may have")[1]
    service.run.chmod(0o777)
    (service.run / "console").chmod(0o777)  # without the rights of the file, only the user of the client protects it
    assert ioc.name not in type_in("ebpfMonIocs\n", *as_user(65534, [])).stdout
    assert service.process.running and service.iocs()


def test_lines_of_site_cmd(installed, new_ioc, new_service):
    """Each line that site.cmd offers in a comment works, and so do queries. What documents tell to load is installed."""
    data = installed.prefix / "share" / "ebpfmon"
    assert {f.name for f in (data / "db").iterdir()} == {f.name for f in paths.DB.iterdir()}
    assert {f.name for f in (data / "queries").iterdir()} == {f.name for f in (paths.MONITOR_BOOT / "queries").iterdir()}
    offered = re.findall(r"(?m)^#([a-z]\w+ \".*)$", (installed.etc / "site.cmd").read_text())
    assert len(offered) >= 7, offered
    ioc = new_ioc(DB).start()
    service = new_service(before=offered).launch()
    service.wait_ioc(ioc)
    assert not [line for line in service.process.lines if "ERROR" in line or "refused" in line], service.process.output()
    console = [installed.program, f"--console={service.run}/console"]
    subprocess.run(console, input="ebpfMonQueryStart RECORD_TIME\n", check=True, capture_output=True, text=True)
    until(lambda: service.get("RECORD_TIME_STATE", as_string=True) == "Running", 20,
          lambda: service.text("RECORD_TIME_MSG"))

    def counted():
        """A put makes the record process; the query may take up the IOC some time after its start."""
        ca.put(ioc.prefix + "SET", 7)
        return service.get("RECORD_TIME_EVENT_CNT") > 0

    until(counted, 20, lambda: service.text("RECORD_TIME_MSG"))


def test_only_put_logs_are_rotated(installed):
    """Of the files that documents write to the folder of the logs, logrotate takes the put logs. An inventory that it renames
    cannot be compared any more."""
    rule = (installed.etc / "../logrotate.d/ebpfmon").read_text()
    patterns = re.findall(r"(?m)^/\S.*\{$", rule)[0].split()[:-1]
    pages = [*(paths.TOP / "documentation").rglob("*.md"), installed.etc / "site.cmd"]
    written = re.findall(r'(?mi)^(ebpfMon\w+).*?/var/log/ebpfmon\)?/([\w.]+)', "\n".join(p.read_text() for p in pages))
    logs = {n for command, n in written if command in ("ebpfMonJsonLog", "ebpfMonCaPutLog")}
    assert {"puts.json", "caput.log"} <= logs and {"monday.json", "inventory.json"} <= {n for _, n in written}, written
    taken = {n for _, n in written if any(fnmatch.fnmatch("/var/log/ebpfmon/" + n, p) for p in patterns)}
    assert taken == logs


@pytest.mark.skipif(not shutil.which("logrotate"), reason="no logrotate")
def test_logrotate(installed, new_ioc, new_service, tmp_path):
    """logrotate with the installed configuration: no line is lost, and none is written twice."""
    ioc = new_ioc(DB).start()
    service = new_service().launch()
    service.wait_ioc(ioc)
    conf = (installed.etc / "../logrotate.d/ebpfmon").read_text()
    (tmp_path / "logrotate").write_text(
        conf.replace("/var/log/ebpfmon", str(service.logs)).replace("    su ebpfmon ebpfmon\n", ""))  # this user has no name

    def values(*names):
        """The values written to SET, according to the lines of these files."""
        lines = [json.loads(l) for n in names if (service.logs / n).exists()
                 for l in (service.logs / n).read_text().splitlines()]
        return sorted(l["value"] for l in lines if l["pv"] == ioc.prefix + "SET")

    ca.put(ioc.prefix + "SET", 1)
    until(lambda: values("puts.json"), 10, lambda: f"the first line\n{service.process.output()}")
    run = subprocess.run(["logrotate", "--force", "--state", service.folder / "state", tmp_path / "logrotate"],
                         capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    ca.put(ioc.prefix + "SET", 2)
    until(lambda: (service.logs / "puts.json").exists(), 10, "a new file")
    ca.put(ioc.prefix + "SET", 3)
    until(lambda: len(values("puts.json", "puts.json.1")) >= 3, 10, lambda: str(values("puts.json", "puts.json.1")))
    assert values("puts.json", "puts.json.1") == [1, 2, 3], "\n".join((service.logs / n).read_text() for n in ("puts.json.1", "puts.json"))
    assert values("puts.json.1")[0] == 1 and values("puts.json")[-1] == 3
    assert oct((service.logs / "puts.json").stat().st_mode & 0o777) == "0o640"


# --- what this host and this user can have -----------------------------------------------------------------
def test_check_as_root(installed):
    run = subprocess.run([installed.program, "--check"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert len(run.stdout.splitlines()) <= 13 and "can watch the IOCs of this host" in run.stdout
    assert not re.search(r"(?m)^NO   (kernel|programs|probes|memory|packets)", run.stdout), run.stdout


def test_check_as_nobody(installed):
    run = subprocess.run([*as_user(65534, []), installed.program, "--check"], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert re.search(r"(?m)^NO   programs +no privileges: .*CAP_BPF", run.stdout), run.stdout
    assert "cannot watch" in run.stdout


def read_table():
    """The table of capabilities in the guide: name → the texts in backticks of the column "without it"."""
    rows = re.findall(r"(?m)^\| (CAP_\w+) \|[^|]*\|([^|]*)\|$", GUIDE)
    return {name: re.findall(r"`([^`]+)`", cell) for name, cell in rows}


def test_table_of_capabilities(installed):
    """Each capability of the unit has a line, and so have the two capabilities that a site may add."""
    assert set(read_table()) == {*installed.unit.capabilities, "CAP_SYS_ADMIN", "CAP_NET_ADMIN"}


def readable_base(folder):
    """Copies softIoc and Base's libraries to a place where every user may read them. The program has its own name."""
    files = [paths.BASE_BIN / "softIoc", paths.BASE / "dbd" / "softIoc.dbd",
             *(paths.BASE / "lib" / paths.ARCH).glob("lib*.so.*")]
    for file in files:
        copy = folder / file.relative_to(paths.BASE)
        copy = copy.with_name(PROGRAM) if copy.name == "softIoc" else copy
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, copy)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)
    return folder


@pytest.mark.parametrize("capability", sorted(BITS))
def test_without(capability, installed, new_ioc, new_service):
    """Without this capability the monitor says what the guide describes, and so does --check."""
    service = new_service(without=[capability])
    base = readable_base(service.folder / "base")
    hidden = new_ioc(DB).start()
    ioc = new_ioc(DB, program=base / "bin" / paths.ARCH / PROGRAM,
                  environ={"LD_LIBRARY_PATH": base / "lib" / paths.ARCH}).start()
    service.launch()
    service.wait("STATE", lambda v: v != 0, 30)
    said = read_table()[capability]
    assert said

    def words():
        return "\n".join([service.text("STATE_MSG"), *service.list("IOC_NOTES"), *service.process.lines])

    state, *messages = said
    service.wait_state(state)
    for message in messages:
        until(lambda: message in words(), 20, lambda: f"{message!r} in {words()}")
    status, rows = check(service)
    assert any(v in ("NO", "part") and capability in t for v, t in rows.values()), rows
    assert status == (capability in ("CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE")), rows
    # these functions still work
    if capability == "CAP_NET_RAW":
        service.wait_ioc(hidden)
        until(lambda: service.get("PACKET_STATE", as_string=True) == "Trouble", 10, "PACKET_STATE Trouble")
    elif capability == "CAP_DAC_READ_SEARCH":
        row = until(lambda: service.iocs().get(ioc.pid), 20, lambda: str(service.iocs()))
        assert row[0] == PROGRAM, row
    else:
        assert service.process.running and not {ioc.pid, hidden.pid} & set(service.iocs())
