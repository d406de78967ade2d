# SPDX-License-Identifier: BSD-3-Clause
"""The Debian package, installed, upgraded, removed and purged by apt in a machine with systemd
(tests/programs/machine.sh). "make deb" must have built the package. These tests are skipped if the package is missing
or old."""
import os
import re
import shutil
import subprocess

import pytest

from tests.harness import loopback, paths
from tests.harness.preload import preload
from tests.harness.wait import patient

DEB = sorted((paths.TOP / "deb").glob("ebpfmon_*.deb"))
NAMESPACES = ["unshare", "-m", "-n", "-i", "-u", "-p", "-C", "--fork"]

SCRIPT = r"""
export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive @ENV@
# The machine has no network, so logrotate cannot be fetched.
say() { echo "@ $*"; }
pid() { systemctl show -P MainPID ebpfmon; }
state() { @BASE@/caget -t -w 1 PKG:STATE 2>/dev/null; }
until_() { end=$((SECONDS + 60)); while [ $SECONDS -lt $end ]; do "$@" && return; sleep 0.2; done; say "late $*: $(state)"; journalctl -u ebpfmon | tail -n 30; exit; }
running() { [ "$(state)" = Running ]; }
is_other() { p=$(pid); [ "$p" != "$1" ] && [ "$p" != 0 ] && systemctl -q is-active ebpfmon; }
apt() { apt-get -qq --no-install-recommends -o Dpkg::Options::=--force-confold "$@" </dev/null; }

mkdir -p /etc/systemd/system/ebpfmon.service.d
cat >/etc/systemd/system/ebpfmon.service.d/test.conf <<END
[Service]
Environment=EBPFMON_P=PKG: LD_PRELOAD=@PRELOAD@ @ENV@
ExecStartPre=-/usr/bin/ebpfMon --check
WatchdogSec=5
RestartSec=0
END
systemctl daemon-reload

dpkg --purge ebpfmon 2>/dev/null # the machine has the packages of this host
apt install /shared/old.deb
until_ running
say "installed $(systemctl is-active ebpfmon) $(systemctl is-enabled ebpfmon) $(state)"
say "user $(ps -o user= -p "$(pid)") $(id -gn ebpfmon) $(getent passwd ebpfmon | cut -d: -f7)"
say "limits $(sed -n 's/^Seccomp:\s*//p; s/^CapEff:\s*//p; s/^NoNewPrivs:\s*//p' /proc/$(pid)/status | tr '\n' ' ')"
say "log $(stat -c '%U %G %a' /var/log/ebpfmon /var/log/ebpfmon/puts.json | tr '\n' ' ')"
say "status $(systemctl show -P StatusText ebpfmon)"
say "check $(journalctl -u ebpfmon -o cat | grep -E '^(yes|part|NO) ' | head -n 12 | awk '{printf "%s:%s ", $2, $1}')"
say "console $(echo ebpfMonReport | ebpfMon --console | head -n 1)"
systemctl reload ebpfmon && say "reload done"
until_ sh -c 'journalctl -u ebpfmon | grep -q "ebpfMon: rules: 0 rules in force"'

p=$(pid); kill -SEGV "$p"; until_ is_other "$p"; say "restart $(systemctl show -P NRestarts ebpfmon)"
until_ running
p=$(pid); kill -STOP "$p"; until_ is_other "$p"; say "watchdog $(systemctl show -P NRestarts ebpfmon)"
journalctl -u ebpfmon | grep -q "Watchdog timeout" && say "watchdog timeout"
until_ running

@BASE@/caput -w 5 PKG:FILTER_IOC "vac*" >/dev/null
until_ grep -qF "vac*" /var/lib/ebpfmon/settings
echo "# of this site" >>/etc/ebpfmon/site.cmd
p=$(pid)
apt install /shared/new.deb
is_other "$p" || until_ is_other "$p"
until_ running
say "upgraded $(dpkg-query -W -f='${Version}' ebpfmon) $(state) $(tail -n 1 /etc/ebpfmon/site.cmd)"
say "filter $(@BASE@/caget -t -w 5 PKG:FILTER_IOC) $(@BASE@/caget -t -w 5 -S PKG:STATE_MSG.VAL$)"

apt remove ebpfmon
say "removed $(systemctl is-active ebpfmon) $(ls /usr/bin/ebpfMon 2>/dev/null) $(ls /etc/ebpfmon | wc -l) $(ls /var/log/ebpfmon | wc -l)"
apt purge ebpfmon
say "purged $(find / -xdev \( -path /proc -o -path /shared -o -path /root -o -path /tmp -o -path /var/lib/dpkg -o -path /var/lib/apt \) -prune \
    -o -iname '*ebpfmon*' -newer /etc/systemd/system/ebpfmon.service.d/test.conf -print | grep -v ebpfmon.service.d | tr '\n' ' ')"
say end
"""


def make_upgrade(old, new, folder):
    """Makes a later version of the same package, with another site.cmd."""
    subprocess.run(["dpkg-deb", "-R", old, folder], check=True)
    control = folder / "DEBIAN" / "control"
    control.write_text(re.sub(r"(?m)^Version: (\S+)", r"Version: \1+later", control.read_text()))
    with (folder / "etc" / "ebpfmon" / "site.cmd").open("a") as site:
        site.write("# of the later version\n")
    subprocess.run(["dpkg-deb", "-Znone", "--root-owner-group", "-b", folder, new], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """The output of the script: first word → rest of the line."""
    if not DEB:
        pytest.skip("no package: make deb")
    if DEB[-1].stat().st_mtime < paths.MONITOR.stat().st_mtime:
        pytest.skip("the package is older than the program: make deb")
    if subprocess.run([*NAMESPACES, "sh", "-c", "mount -t cgroup2 none /sys/fs/cgroup && test -x /lib/systemd/systemd"],
                      capture_output=True, check=False).returncode:
        pytest.skip("no systemd, or no machine can be made here")
    shared = tmp_path_factory.mktemp("shared")
    os.link(DEB[-1], shared / "old.deb") if os.stat(DEB[-1]).st_dev == os.stat(shared).st_dev else \
        (shared / "old.deb").write_bytes(DEB[-1].read_bytes())
    make_upgrade(shared / "old.deb", shared / "new.deb", shared / "tree")
    shared.chmod(0o755)
    settings = {**loopback.SETTINGS, "EPICS_CA_ADDR_LIST": "127.0.0.1"}
    env = " ".join(f"{k}={v}" for k, v in settings.items() if v)
    preload(shared, "hostIds")
    (shared / "script").write_text(SCRIPT.replace("@ENV@", env).replace("@BASE@", str(paths.BASE_BIN))
                                   .replace("@PRELOAD@", "/shared/hostIds.so"))
    subprocess.run([*NAMESPACES, "--kill-child", "bash", paths.TESTS / "programs" / "machine.sh", shared, paths.BASE],
                   stdin=subprocess.DEVNULL, capture_output=True, timeout=patient(60), check=False)
    text = (shared / "out").read_text()
    print(text)
    return dict(line[2:].split(" ", 1) if " " in line[2:] else (line[2:], "") for line in text.splitlines()
                if line.startswith("@ "))


def test_build_without_privileges(tmp_path):
    """tools/deb.sh asks only for packages and EPICS Base. The check whether this user may watch processes, which fails in a
    container, is not for who builds a package."""
    scripts = {"tools/deb.sh": (paths.TOP / "tools" / "deb.sh").read_text(),
               "tools/setup.sh": '#!/bin/sh\n[ "$1" = base ] && echo /the/base\n',
               "debian/rules": '#!/bin/sh\necho "$EPICS_BASE" >"$DEB_OUT/ebpfmon_1_all.deb"\n',
               **{f"bin/{name}": "#!/bin/sh\n" for name in ("dh", "dh_clean", "lintian")}}
    for name, text in scripts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    run = subprocess.run([tmp_path / "tools" / "deb.sh"], capture_output=True, text=True, check=False,
                         env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == str(tmp_path / "deb" / "ebpfmon_1_all.deb")
    assert (tmp_path / "deb" / "ebpfmon_1_all.deb").read_text() == "/the/base\n"


@pytest.mark.parametrize("lacks", [False, True])
def test_what_the_kernel_lacks_is_said_at_the_installation(tmp_path, lacks):
    """The script that apt runs, as another user, where the kernel has type information and where it has none."""
    script, unit = tmp_path / "postinst", paths.TOP / "service" / "ebpfmon.service"
    text = (paths.TOP / "debian" / "ebpfmon.postinst").read_text()
    for old, new in ("#DEBHELPER#", ""), ("--reuid ebpfmon --regid ebpfmon", "--reuid daemon --regid daemon"), \
            ("/run/systemd/system", "/run"), ("/lib/systemd/system/ebpfmon.service ", f"{unit} "), (" ebpfMon --check", f" {paths.MONITOR} --check"):
        assert old in text
        text = text.replace(old, new)
    script.write_text(text)
    (tmp_path / "none").mkdir()
    hide = f"mount --bind {tmp_path}/none /sys/kernel/btf; " if lacks else ""
    run = subprocess.run(["unshare", "-m", "sh", "-c", f"{hide}sh {script} configure"], capture_output=True, text=True, timeout=patient(60),
                         check=False)
    assert (run.returncode, run.stderr) == (0, ""), run
    if not lacks:
        assert run.stdout == ""
    else:
        first, *rows = run.stdout.splitlines()
        assert first == "ebpfmon: its service cannot watch all IOCs of this host (ebpfMon --check):", run.stdout
        assert any(row.startswith("NO   kernel ") and "use a kernel with CONFIG_DEBUG_INFO_BTF" in row for row in rows), run.stdout


def test_install(story):
    """After apt install the service runs as its user, sandboxed, enabled, and its PVs are there."""
    assert story["installed"] == "active enabled Running"
    assert story["user"] == "ebpfmon ebpfmon /usr/sbin/nologin"
    capabilities, privileges, seccomp = story["limits"].split()
    assert (int(capabilities, 16), privileges, seccomp) == (1 << 2 | 1 << 13 | 1 << 19 | 1 << 38 | 1 << 39, "1", "2")
    assert story["log"].split() == "ebpfmon ebpfmon 2750 ebpfmon ebpfmon 640".split()
    assert story["status"].startswith(("Running: watching", "Starting"))


def test_sandbox(story):
    """The sandbox of the unit does not take away what the capabilities give: ebpfMon --check, run as the unit runs."""
    rows = dict(pair.split(":") for pair in story["check"].split())
    assert len(rows) == 12, rows
    absent = {subject for subject, verdict in rows.items() if verdict == "NO"}
    assert absent <= {"containers", "stacks", "priority"}, rows


def test_console(story):
    assert "ebpfMon" in story["console"], story


def test_reload_and_restart(story):
    assert story["reload"] == "done"
    assert story["restart"] == "1", "after a crash"
    assert story["watchdog"] in ("2", "timeout"), "after it stopped to feed the watchdog"
    assert not [k for k in story if k.startswith("late")], story


def test_upgrade(story):
    """After the upgrade the new version runs, and the site's configuration and the filter are unchanged."""
    version, state, last = story["upgraded"].split(" ", 2)
    assert version.endswith("+later") and state == "Running" and last == "# of this site"
    assert story["filter"].startswith("vac* "), story["filter"]
    assert "filter restored" in story["filter"], story["filter"]


def test_remove_and_purge(story):
    """After the removal nothing runs, and configuration and logs stay. After the purge they are removed, too."""
    assert story["removed"].split() == ["inactive", "5", "1"] or story["removed"].split()[0] == "inactive"
    assert story["purged"] == ""
    assert "end" in story


def test_a_tree_that_was_built_elsewhere_is_refused(tmp_path):
    """make deb of a copied tree, whose programs load the libraries of the first one, says so, and what to do."""
    for folder in "tools", "bin/linux-x86_64":
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(paths.TOP / "tools" / "deb.sh", tmp_path / "tools")
    shutil.copy(paths.MONITOR, tmp_path / "bin" / "linux-x86_64" / "ebpfMon")
    done = subprocess.run([tmp_path / "tools" / "deb.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr == "deb: this tree was built in another folder: make clean, then again\n", done.stderr
