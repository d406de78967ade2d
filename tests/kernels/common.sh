# SPDX-License-Identifier: BSD-3-Clause
# What the init programs of the emulated machine share: they begin with ". /m/common.sh".
/bin/busybox mount -t proc proc /proc
/bin/busybox --install -s /bin
export PATH=/bin:/m
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
echo root:x:0:0:root:/tmp:/bin/sh >/etc/passwd
mkdir -p /dev/shm /tmp /sys/fs/bpf
mount -t tracefs tracefs /sys/kernel/tracing
mount -t debugfs debugfs /sys/kernel/debug
mount -t bpf bpf /sys/fs/bpf
ip link set lo up
hostname kernels
# A datagram to 127.0.0.1 reaches only one server, so each server has its own port (run.py).
. /m/loopback.sh
export HOME=/tmp

say() { echo "@@$1"; }
# An emulated machine on a busy host is slow, so clients wait for up to 30 s. A put that fails is an answer "late".
get() { caget -w 30 "$@" 2>&1; }
put() { caput -w 30 "$@" >/dev/null 2>&1 || say "late put $*"; }
val() { caget -w 30 -t "$@" 2>/dev/null; }
# show NAME...: answers with PVs of the monitor.
show() { for n; do say "$n"; get -t -F'|' "M:$n"; done; }
# text, line NAME...: answers with long texts of the monitor; text: waveforms of CHAR, line: lsi records.
text() { for n; do say "$n"; get -t -S "M:$n"; done; }
line() { for n; do say "$n"; get -t -S "M:$n.VAL\$"; done; }
# within SECONDS COMMAND...: waits until the command succeeds, at most four times SECONDS, because the host may be busy.
within() {
    late=$(($(cut -d. -f1 /proc/uptime) + 4 * $1)); shift
    while ! "$@"; do
        [ "$(cut -d. -f1 /proc/uptime)" -lt "$late" ] || return 1
        usleep 250000
    done
}
# until_ SECONDS COMMAND...: as within; if the command does not succeed, this is an answer "late".
until_() { within "$@" || { shift; say "late $*"; return 1; }; }
has() { [ "$(val "$1")" = "$2" ]; }
like() { case $(val "$1") in *$2*) return 0; esac; return 1; }
# tells NAME PATTERN: true if a long text of the monitor matches.
tells() { case $(val -S "M:$1") in *$2*) return 0; esac; return 1; }
differs() { [ "$(val "$1")" != "$2" ]; }
more() { [ "$(val "$1" | cut -d. -f1)" -ge "$2" ] 2>/dev/null; }
# Waits until a PV has the same value twice, 1.5 s apart. The monitor publishes it every second.
settle() {
    a=x; b=y; n=0
    while [ "$a" != "$b" ]; do
        if [ $n -ge 10 ]; then say "late settle $1"; return; fi
        a=$b; sleep 1; usleep 500000; b=$(val "$1"); n=$((n + 1))
    done
}
# cmd TEXT: a line for the shell of the monitor.
cmd() { echo "$*" >/tmp/monitor.in; }
# If the machine stands still for some seconds, STATE says that threads make no progress, until they go on. An operator sees the
# same. What counts is whether the monitor comes back by itself.
running() { within 20 has M:STATE Running; }

say uname; uname -r
say machine; uname -m
mkfifo /tmp/monitor.in /tmp/ioc.in
sleep 100000 >/tmp/monitor.in & sleep 100000 >/tmp/ioc.in &
