# SPDX-License-Identifier: BSD-3-Clause
"""The archive and the RPM, installed in a root that has nothing but the libraries that each system has. "make rpm" must have built
them. These tests are skipped if they are missing or old."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness import ca, db, loopback, paths
from tests.harness.process import Process
from tests.harness.wait import until

BUILT = paths.TOP / "archive"
ARCHIVES = sorted(BUILT.glob("ebpfmon-*.tar.gz"))
PACKAGES = sorted(BUILT.glob("*/ebpfmon-*.rpm"))
EACH_SYSTEM = ("libc.so", "libm.so", "ld-linux", "libgcc_s.so", "libstdc++.so", "libcurl.so", "libreadline.so")
IN_ROOT = ["unshare", "-m", "--kill-child", "sh", "-c",
           'mount --rbind /proc "$0/proc" && mount --rbind /sys "$0/sys" && exec chroot "$0" "$@"']


def libraries(*files):
    """Name → path of the libraries that these files need on this host."""
    lines = subprocess.run(["ldd", *files], capture_output=True, text=True, check=True).stdout.splitlines()
    words = [line.split() for line in lines if not line.endswith(":")]  # these name the files
    return {Path(w[0]).name: w[2] if "=>" in w else w[0] for w in words if "/" in w[0] or "/" in "".join(w[2:3])}


@pytest.fixture(params=["archive", "rpm"])
def root(request, tmp_path):
    files = ARCHIVES if request.param == "archive" else PACKAGES
    if not files or files[-1].stat().st_mtime < paths.MONITOR.stat().st_mtime:
        pytest.skip("not built, or older than the program: make rpm")
    root = tmp_path / "root"
    for folder in ("proc", "sys", "tmp", "dev", "etc", "run/ebpfmon", "var/log/ebpfmon", "var/lib/ebpfmon"):
        (root / folder).mkdir(parents=True)
    (root / "dev" / "null").touch()
    if request.param == "archive":
        subprocess.run(["tar", "xzf", files[-1], "-C", tmp_path], check=True)
        subprocess.run(next(tmp_path.glob("ebpfmon-*/install.sh")), check=True, env={**os.environ, "DESTDIR": str(root), "prefix": "/usr"})
    else:
        subprocess.run(["rpm", "--root", root, "--dbpath", "/rpm", "--nodeps", "--noscripts", "-i", files[-1]], check=True)
    needed = libraries(*(root / "usr" / "bin" / name for name in ("ebpfMon", "ebpfMonTop", "ebpfMonHistory")))
    system = {name: path for name, path in needed.items() if name.startswith(EACH_SYSTEM)}
    for name, path in {**system, **libraries(*system.values())}.items():
        place = root / ("lib64" if name.startswith("ld-") else "usr/lib/x86_64-linux-gnu")
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    return root


@pytest.mark.skipif(not PACKAGES or not shutil.which("busybox"), reason="not built: make rpm; or no busybox")
def test_scripts_of_the_rpm(tmp_path):
    """Installed, installed again as another release, and removed: what systemd is asked for."""
    for folder in ("bin", "usr/bin", "run/systemd/system"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), tmp_path / "bin" / "sh")
    for name in ("systemctl", "systemd-sysusers"):
        stub = tmp_path / "usr" / "bin" / name
        stub.write_text(f'#!/bin/sh\necho "{name} $*" >>/said\n')
        stub.chmod(0o755)

    def said(*action):
        (tmp_path / "said").write_text("")
        subprocess.run(["rpm", "--root", tmp_path, "--dbpath", "/rpm", "--nodeps", *action], check=True)
        return (tmp_path / "said").read_text().splitlines()

    assert said("-i", PACKAGES[-1]) == ["systemd-sysusers ebpfmon.conf", "systemctl daemon-reload", "systemctl preset ebpfmon.service"]
    assert said("-U", "--force", PACKAGES[-1]) == ["systemd-sysusers ebpfmon.conf", "systemctl daemon-reload",
                                                  "systemctl try-restart ebpfmon.service", "systemctl daemon-reload"]
    assert said("-e", "ebpfmon") == ["systemctl --no-reload disable --now ebpfmon.service", "systemctl daemon-reload"]
    assert not (tmp_path / "usr" / "bin" / "ebpfMon").exists()


def test_it_watches(root, new_ioc):
    """It says which version it is, starts by the installed script, and sees a put."""
    ioc = new_ioc(db.READY + db.record("ao", "AO")).start()
    said = subprocess.run([*IN_ROOT, root, "/usr/bin/ebpfMon", "--version"], capture_output=True, text=True, check=True).stdout
    assert "ebpfMon 0." in said
    port, prefix = loopback.take_port(), f"{ioc.prefix}MON:"
    environ = {**loopback.server(port, IOC="archive"), "EBPFMON_P": prefix, "EBPFMON_MACROS": f",FILTER_IOC={ioc.name}"}
    monitor = Process([*IN_ROOT, root, "/usr/bin/ebpfMon", "--no-shell", "/usr/share/ebpfmon/st.cmd"], environ)
    try:
        until(lambda: dict(zip(ca.get(prefix + "IOC_NAMES"), ca.get(prefix + "IOC_LEVELS"))).get(ioc.name) == "chains", 60, monitor.output)
        ioc.put("AO", 42)
        until(lambda: ca.get(prefix + "PUT_LAST_VALUE_S") == "42", 20, monitor.output)
        assert ca.get(prefix + "HISTORY_STATE") == 1
    finally:
        monitor.kill()
        loopback.give_port(port)
