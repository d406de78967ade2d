#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Boots systemd in a machine (a container) that is made of this host's files, and runs a script in it. All that the
# script writes is gone afterwards, except in FOLDER.
#
#   unshare -m -n -i -u -p -C --fork bash tests/programs/machine.sh FOLDER BASE
#
# Host and machine share FOLDER, which is /shared in the machine. FOLDER/script runs as root; its output goes to
# FOLDER/out. BASE is EPICS Base; the machine has it at the same path. The machine has only the loopback interface. It
# has its own process ids, but eBPF gives a monitor the process ids of the host. So a monitor in it serves PVs, but
# finds no IOC.
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
mount -o remount,bind,ro proc/sys # because most of these settings are those of the host
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

# Of the host's services only the journal runs.
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
export container=other # so systemd changes no settings of the kernel
exec /lib/systemd/systemd --system --unit=script.target --show-status=0 --log-target=journal
