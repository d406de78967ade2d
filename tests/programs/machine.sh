#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Boots systemd in a machine made of this host's files, and runs a script in it. What it writes there is gone afterwards.
#
#   unshare -m -n -i -u -p -C --fork bash tests/programs/machine.sh FOLDER BASE
#
# FOLDER is the only one that both have, as /shared: FOLDER/script runs as root, its output goes to FOLDER/out. BASE is
# EPICS Base, at the same place. The machine has the loopback interface alone, and process ids of its own: a monitor in it
# serves PVs, but eBPF tells it ids of the host, so it sees no IOC.
set -e
shared=$1 base=$2
mount --make-rprivate /
top=$(mktemp -d)
mount -t tmpfs none "$top"
mkdir "$top/new" "$top/work" "$top/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$top/new,workdir=$top/work" "$top/root"
cd "$top/root"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys # most settings there are the host's
mount -t sysfs sysfs sys
mount -t cgroup2 none sys/fs/cgroup
mount -t tmpfs none run
mount -t tmpfs none tmp
mount -t tmpfs none dev
for n in null zero full random urandom tty; do
    touch "dev/$n"
    mount --bind "/dev/$n" "dev/$n"
done
mkdir dev/shm dev/pts dev/mqueue dev/hugepages
mount -t devpts -o newinstance,ptmxmode=666 none dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /run/systemd/journal/dev-log dev/log
mkdir shared
mount --bind "$shared" shared
touch shared/console dev/console
mount --bind shared/console dev/console
mkdir -p ".$base"
mount --bind "$base" ".$base"
ip link set lo up

# nothing of the host's services but the journal
rm -f etc/systemd/system/*.wants/* usr/sbin/policy-rc.d
for unit in systemd-sysctl systemd-binfmt systemd-modules-load systemd-udevd systemd-timesyncd systemd-logind systemd-networkd systemd-resolved; do
    ln -sf /dev/null "etc/systemd/system/$unit.service"
done
cat >etc/systemd/system/script.service <<'END'
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart=/bin/bash /shared/script
ExecStopPost=/bin/systemctl --force --force poweroff
StandardOutput=file:/shared/out
StandardError=inherit
END
printf '[Unit]\nWants=script.service systemd-journald.service\n' >etc/systemd/system/script.target
mkdir old
pivot_root . old
cd /
umount -l /old
export container=other # systemd then leaves the kernel alone
exec /lib/systemd/systemd --system --unit=script.target --show-status=0 --log-target=journal
