# SPDX-License-Identifier: BSD-3-Clause
"""IOCs as in containers are watched as others are: under a seccomp filter, and in namespaces of their own with an overlayfs as
root."""
import os
import re
import struct
import sys

import pytest
from tests.harness import ca, db, loopback, paths, rawca
from tests.harness.container import Container, missing
from tests.harness.ioc import OURS
from tests.harness.wait import until

DATABASE = db.READY + db.chain("C", 5) + db.record("ao", "AO") + db.record("ao", "OFF", DISP="1")
UNDER = [sys.executable, paths.PROGRAMS / "under_seccomp.py"]
N = 200


def line_of(monitor, pv, change):
    return until(lambda: next((l for l in monitor.lines("PUT_LOG").splitlines() if f" {pv} {change} by " in l), None), 10,
                 lambda: f"{pv} {change}:\n" + monitor.lines("PUT_LOG"))


def is_exact(monitor, ioc):
    """Checks that each record is counted exactly while clients put."""
    before = {n: c.count for n, c in monitor.records(ioc.name).items()}
    own = int(ioc.get("C4"))
    for i in range(N):
        ca.pv(f"{ioc.prefix}C0.PROC").put(1, wait=bool(i % 2), timeout=60)
    until(lambda: int(ioc.get("C4")) == own + N, 20, "all are processed")

    def counts():
        return {n: c.count - before[n] for n, c in monitor.records(ioc.name).items() if n.startswith(ioc.prefix + "C")}

    until(lambda: set(counts().values()) == {N}, 20, counts)


def test_results_under_seccomp(new_ioc, new_monitor):
    """The seccomp filter kills a process that makes the system calls of probes. The IOC is not killed, its puts have
    results, and STATE is not Degraded. If return probes would kill the IOC on this kernel, the note of the IOC says
    so."""
    monitor = new_monitor().start()
    ioc = new_ioc(DATABASE, wrap=[*UNDER, "kill"]).start()
    monitor.wait_ioc(ioc, records=len(DATABASE.splitlines()))
    is_exact(monitor, ioc)
    ca.write(ioc.port, ioc.prefix + "AO", struct.pack(">d", 4.5), rawca.DOUBLE)
    line = line_of(monitor, ioc.prefix + "AO", "0 -> 4.5")
    if "return probes under seccomp yes" not in "\n".join(monitor.command("ebpfMonReport")):
        pytest.skip("this kernel would end an IOC under seccomp for a return probe, and the monitor knows that")
    assert "not seen" not in line, line
    monitor.wait_state("Running")
    assert ioc.running


def test_monitor_that_cannot_try(new_ioc, new_monitor):
    """This monitor may not set a seccomp filter, so it cannot try what return probes do to the IOC. It attaches none,
    and the note says what is missing. The result of a put-callback comes from the server's reply."""
    monitor = new_monitor()
    monitor.launch([*UNDER, "closed"])
    ioc = new_ioc(DATABASE, wrap=[*UNDER, "kill"]).start()
    monitor.wait_ioc(ioc, records=len(DATABASE.splitlines()))
    ca.write(ioc.port, ioc.prefix + "AO", struct.pack(">d", 4.5), rawca.DOUBLE)
    assert "result not seen" in line_of(monitor, ioc.prefix + "AO", "0 -> 4.5")
    # on a busy host the packets of a put may come too late for its line
    lines = []
    for value in (5.5, 6.5, 7.5):
        ioc.put("AO", value, wait=True)
        lines.append(line_of(monitor, ioc.prefix + "AO", f"{value - 1} -> {value}"))
        if "result not seen" not in lines[-1]:
            break
    assert "result not seen" not in lines[-1], lines
    monitor.wait_text("STATE_MSG", lambda text: "seccomp" in text)
    is_exact(monitor, ioc)


def test_without_the_process_ids_of_the_host(new_monitor):
    """As in a container with its own: /proc shows IOCs, and the kernel knows them by other numbers, so no put would be seen."""
    monitor = new_monitor().launch(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"])
    monitor.wait_state("Failed")
    assert "without the process ids of the host" in monitor.text("STATE_MSG")
    until(lambda: monitor.get("HOST_STATUS") == 2 and "process ids" in monitor.text("HOST_STATUS_MSG"), 10, lambda: monitor.text("HOST_STATUS_MSG"))


@pytest.fixture
def new_container(tmp_path):
    why = missing(tmp_path)
    if why:
        pytest.skip(why)
    made, port = [], loopback.take_port()

    def new(command, host, **environ):
        made.append(Container(tmp_path, command, host, port, **environ))
        made[-1].wait_line("iocRun: All initialization complete")
        return made[-1]

    yield new
    for container in made:
        container.discard()
    loopback.give_port(port)


def row_of(monitor, pid):
    return until(lambda: monitor.iocs().get(pid), 20, lambda: f"pid {pid}: {monitor.iocs()}")


def test_namespaces(tmp_path, new_container, new_monitor):
    """Two containers have the same port and the same records. The name of each IOC comes from its own environment, or
    from the folder of its st.cmd in its own file system. A put is joined to the packet of its own namespace, and its
    writer is a process in that container. Counts are exact."""
    monitor = new_monitor().start()
    begin = OURS.rstrip("*")
    database, folder = tmp_path / "a.db", tmp_path / f"{begin}folder"
    database.write_text(DATABASE)
    folder.mkdir()
    # the file is only in the upper layer of this container
    named = new_container(f"echo 'dbLoadRecords {database} P=C:' >/st.cmd; echo iocInit >>/st.cmd; exec {paths.BASE_BIN}/softIoc /st.cmd",
                          "boxone", IOC=begin + "named")
    by_folder = new_container(f"unset IOC; cd {folder}; echo 'dbLoadRecords {database} P=C:' >st.cmd; echo iocInit >>st.cmd; "
                              f"exec {paths.BASE_BIN}/softIoc st.cmd", "boxtwo")
    for container, name, host, value in (named, "named", "boxone", 4), (by_folder, "folder", "boxtwo", 5):
        assert row_of(monitor, container.pid)[0] == begin + name
        until(lambda: monitor.iocs()[container.pid][3] == "chains", 20, monitor.iocs)
        before = {n: c.count for n, c in monitor.records(begin + name).items()}
        for i in range(10):
            done = container.run("caput", "-c", "C:C0.PROC", 1)
            assert done.returncode == 0, done
        until(lambda: {c.count - before[n] for n, c in monitor.records(begin + name).items() if n.startswith("C:C")} == {10}, 20,
              lambda: monitor.records(begin + name))
        for value in range(value, value + 100, 10):  # a client may end before the monitor reads its container
            container.run("caput", "-c", "C:AO", value)
            line = until(lambda: next((l for l in monitor.lines("PUT_LOG").splitlines() if f" -> {value} by " in l), None), 10,
                         lambda: monitor.lines("PUT_LOG"))
            if f"in {container.id[:12]}" in line:
                break
        assert " C:AO " in line and f" by root@{host} caput[" in line and f"in {container.id[:12]}" in line, line
        assert "(CA 127.0.0.1:" in line, line
        assert len([l for l in monitor.lines("PUT_LOG").splitlines() if f"-> {value} by" in l]) == 1, "seen inside and outside, once"
    monitor.wait_state("Running")
    assert os.path.exists("/st.cmd") is False


def test_what_the_files_ask_for():
    """compose.yaml and daemonset.yaml give the container the same, and no more: containers.md has the reasons."""
    service = paths.TOP / "service"
    unit = re.search(r"^AmbientCapabilities=(.*)", (service / "ebpfmon.service").read_text(), re.M)[1].split()
    needed = {"SYS_ADMIN", *(name.removeprefix("CAP_") for name in unit)}
    documented = (paths.TOP / "documentation" / "use" / "containers.md").read_text()
    row = re.search(r"^\| the capabilities ([A-Z_, ]+) \|", documented, re.M)[1]
    assert {"SYS_ADMIN", *row.split(", ")} == needed
    image = (service / "container" / "Containerfile").read_text()
    volumes = set(re.search(r"^VOLUME (.*)", image, re.M)[1].split())
    folders = {*volumes, "/run/ebpfmon", "/tmp"}
    assert not re.search(r"^(USER|EXPOSE)", image, re.M)
    files = {name: re.sub(r"#.*", "", (service / "container" / name).read_text()) for name in ("compose.yaml", "daemonset.yaml")}
    for name, given in (("compose.yaml", ["pid: host", "network_mode: host", "cap_drop: [ALL]", "read_only: true", "no-new-privileges:true",
                                          "apparmor:unconfined", "label:disable"]),
                        ("daemonset.yaml", ["hostPID: true", "hostNetwork: true", "drop: [ALL]", "readOnlyRootFilesystem: true",
                                            "allowPrivilegeEscalation: false", "appArmorProfile: {type: Unconfined}", "seLinuxOptions: {type: spc_t}"])):
        text = files[name]
        assert not [line for line in given if line not in text], name
        assert set(re.search(r"add: \[(.*)\]", text)[1].split(", ")) == needed, name
        assert "privileged: true" not in text and "devices" not in text, name
    written = re.findall(r"mountPath: ([^ ,}]+)", files["daemonset.yaml"])
    tmpfs, mounts = re.search(r"tmpfs: \[(.*)\]", files["compose.yaml"])[1].split(", "), re.findall(r"- \w+:(/\S+)", files["compose.yaml"])
    assert set(written) == {*tmpfs, *mounts} == folders
