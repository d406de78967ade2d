#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# The init program of the emulated machine for "run.py -r": threads of an IOC that preempt each other on one CPU
# (realtimeThreads.c), at all levels, with queries. Boot parameters: seconds=N (of a round), levels=a,b (a round at each
# of them), minutes=N (again and again for so long; between, the IOC is killed and starts anew, and queries stop and
# start). realtime.py knows the right answers.
. /m/common.sh
parameter() { sed -n "s/.* $1=\([^ ]*\).*/\1/p" /proc/cmdline; }
seconds=$(parameter seconds); minutes=$(parameter minutes)
levels=$(parameter levels | tr , ' ')
queries="Q_STACKS Q_CALL Q_SYSCALL"

for t in 0 1 2 3 4; do
    set -- "$@" -m "T=$t" -d /m/realtimeThread.db
    for r in CNT C1 C2 C3 B1 B2; do T="$T R:T$t:$r"; done
done
for s in 1 2 5; do
    set -- "$@" -m "S=$s,SCAN=.$s second" -d /m/realtimeScan.db
    for r in A A1 A2 B B1 C D D1; do T="$T R:S$s$r"; done
done
# All threads of the IOC are on one CPU.
startIoc() {
    rm -f /tmp/go* /tmp/done*; round=0
    LD_PRELOAD=/m/realtimeThreads.so REALTIME_SECONDS=$seconds IOC=realtime EPICS_CAS_SERVER_PORT=5070 \
        taskset 1 softIoc -D /m/softIoc.dbd -d /m/realtime.db "$@" </tmp/ioc.in >/tmp/ioc.log 2>&1 &
    IOCPID=$!
    until_ 60 more R:READY 1
}
startIoc "$@"
ebpfMon /m/realtime.cmd </tmp/monitor.in >/tmp/monitor.log 2>&1 &
MONPID=$!
until_ 90 eval 'case $(val M:STATE) in ""|Starting) false;; esac'
say STATE; val M:STATE
line STATE_MSG

# All digits of a number, which caget shows with an exponent from a million on.
count() { val -f 0 "$1"; }
# counters NAME
counters() {
    settle M:PROC_CNT
    say "counters $1"; get $T
    say "counted $1"; rm -f /tmp/records; cmd "ebpfMonRecords \"*\" R:* > /tmp/records"
    until_ 20 grep -q "^R:T4:SET " /tmp/records; cat /tmp/records
    say "puts $1"; count M:PUT_CNT
    say "losses $1"; get -t -F'|' M:LOST_REASONS M:LOST_CNTS
    settle M:Q_SYSCALL_EVENT_CNT; say "syscalls $1"; count M:Q_SYSCALL_EVENT_CNT; count M:Q_SYSCALL_DROPPED_CNT
}
same() { was=$is; is=$(get $T); [ "$was" = "$is" ]; }
areThere() { for q in $queries; do case $(val M:${q}_STATE) in ""|Starting) return 1; esac; done; }
# goThrough LEVEL NAME: one round
goThrough() {
    put M:FILTER_LEVEL "$1"; until_ 60 like M:IOC_LEVELS "$1"
    running
    counters "$2 before"
    put R:OFF 0
    : >/tmp/go$round
    until_ $((seconds + 60)) [ -s /tmp/done$round ] || return 1
    put R:OFF 1; is=; until_ 60 same
    say "made $2"; cat /tmp/done$round
    round=$((round + 1))
    counters "$2 after"
    say "memory $2"; val M:MEM
}
until_ 60 areThere
for q in $queries; do show ${q}_STATE; line ${q}_MSG; done
turn=0
while :; do
    for l in $levels; do goThrough "$l" "$l $turn" || break 2; turn=$((turn + 1)); done
    for q in $queries; do show ${q}_EVENT_CNT ${q}_DROPPED_CNT; done
    [ "$minutes" ] && [ "$(cut -d. -f1 /proc/uptime)" -lt $((60 * minutes)) ] || break
    kill -9 $IOCPID; wait $IOCPID; until_ 20 more M:IOC_GONE_CNT 1
    startIoc "$@"; until_ 30 has M:IOC_GONE_CNT 0
    for q in $queries; do put M:${q}_RUN 0; done
    for q in $queries; do put M:${q}_RUN 1; done
    until_ 60 areThere
done
running
say "end STATE"; val M:STATE
say "end LOST_CNT"; val M:LOST_CNT
say threads; for t in /proc/$IOCPID/task/*; do echo "$(cat $t/comm): $(sed 's/.*) //' $t/stat | cut -d' ' -f38,39)"; done
say alive; [ -d /proc/$IOCPID ] && echo IOC; [ -d /proc/$MONPID ] && echo monitor
cmd exit; until_ 20 eval '! [ -d /proc/$MONPID ]'
wait $MONPID; say exit; echo $?
say log; cat /tmp/monitor.log
say iocs; cat /tmp/ioc.log
say dmesg; dmesg | tail -n 60
say done
sync; poweroff -f
