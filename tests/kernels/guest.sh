#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# The init program of the emulated machine. It starts IOCs and the monitor, makes puts, and prints answers. Before each
# answer it prints a line "@@NAME". check.py knows the right answers.
. /m/common.sh
COUNTERS="K:CNT K:C1 K:C2 K:C3 K:C4 K:F1 K:F2 K:OUT K:O1 K:TWICE K:DEVTIME K:ODLY K:ODLY:B K:ODLY:C K:ASYN K:ASYN:END"
counters() {
    settle M:PROC_CNT
    say "counters $1"; get $COUNTERS
    say "counted $1"; get -t -F'|' M:PROC_TOP_NAMES M:PROC_TOP_CNTS M:PROC_TOP_AT_LEAST
    say "losses $1"; get -t -F'|' M:LOST_REASONS M:LOST_CNTS
}
scans() { for r in CNT TWO DEVTIME ODLY ASYN; do put K:$r.SCAN "$1"; done; }
same() { was=$is; is=$(get $COUNTERS); [ "$was" = "$is" ]; }
# work COUNT [NAME...]: all records scan until K:CNT has processed COUNT times; meanwhile answers with PVs.
work() {
    c=$(val K:CNT | cut -d. -f1)
    scans ".2 second"; until_ 60 more K:CNT $((c + $1))
    [ "$2" ] && show $2
    scans Passive; is=; until_ 60 same # until the asynchronous records have completed, too
}
puts() {
    put K:SET 42
    put K:SET 43; put -c K:SET 200
    put K:TEXT hello
    if [ -x /m/pvput ]; then EPICS_PVA_BROADCAST_PORT=5086 pvput P:SET 7.5 >/dev/null 2>&1; else put P:SET 7.5; fi
    # Each put waits for its packet, so any of them may be logged last.
    for p in "K:SET 42 *43 by " "K:SET 43 *200 " "K:SET:D 85 *87 by " "K:TEXT *hello by " "P:SET *7.5 by "; do
        until_ 20 tells PUT_LOG "$p"
    done
    text PUT_LOG
}
putLast() { put K:SET 51; until_ 20 tells "AUTO_PUT_LAST.VAL\$" "K:SET:D *103 by "; line AUTO_PUT_LAST; }
level() { put M:FILTER_LEVEL "$1"; until_ 30 like M:IOC_LEVELS "$1"; say "level $1"; get -t M:IOC_LEVELS; }

# Each query loads its programs, or says why it cannot.
queries() {
    for q in Q_ENTRY Q_RETURN Q_CALL Q_SYSCALL Q_SYSCALLS Q_PROFILE Q_SWITCH Q_WAIT Q_FILES Q_SOCKETS Q_USDT Q_FAULTS; do
        until_ 60 eval 'case $(val M:${q}_STATE) in ""|Starting) false;; esac'
        show ${q}_STATE; line ${q}_MSG
    done
    until_ 60 more M:Q_SYSCALLS_EVENT_CNT 1
}

# Starts the IOC "machine", also after its end.
ioc() {
    IOC=machine EPICS_CAS_SERVER_PORT=5070 latencyIoc /m/latencyIoc.dbd "P=K:,US=15000000" /m/latency.db /m/kernels.db \
        </tmp/ioc.in >/tmp/ioc.log 2>&1 &
    IOCPID=$!
}
ioc
softioc=softIocPVA; [ -x /m/$softioc ] || softioc=softIoc # a cross build has no PV Access
IOC=pva EPICS_CAS_SERVER_PORT=5072 EPICS_PVAS_BROADCAST_PORT=5086 $softioc -D /m/$softioc.dbd -d /m/pva.db \
    </tmp/ioc.in >/tmp/pva.log 2>&1 &
PVAPID=$!
until_ 60 more K:READY 1
ebpfMon /m/monitor.cmd </tmp/monitor.in >/tmp/monitor.log 2>&1 &
MONPID=$!
until_ 90 eval 'case $(val M:STATE) in ""|Starting) false;; esac'
say seconds; cut -d' ' -f1 /proc/uptime
end() {
    say log; cat /tmp/monitor.log
    say iocs; cat /tmp/ioc.log /tmp/pva.log
    kill $IOCPID $PVAPID $MONPID
    say dmesg; dmesg | tail -n 60
    say done
    sync; poweroff -f
}
finish() {
    say lost; get -t -F'|' M:LOST_REASONS M:LOST_CNTS
    running
    for n in STATE LOST_CNT COST TRAP_COST CPU MEM PACKET_STATE PACKET_LOST_CNT; do say "end $n"; get -t M:$n; done
    cmd "ebpfMonReport 2"
    # To set the clock forward hides no processing. Back by a part of a second, once, it can hide one of a record that
    # processes just then.
    isMarked() {
        cmd "ebpfMonRecords \"*\" $1"; usleep 300000
        tail -n 5 /tmp/monitor.log | grep -q "^$1 .*atleast" && echo "marked $1"
    }
    say "clock forward"; date -s "@$(($(date +%s) + 5))" >/dev/null
    put K:TEXT a; sleep 4; isMarked K:TEXT; isMarked K:READY
    put K:TEXT b; s=$(date +%s); while [ "$(date +%s)" = "$s" ]; do usleep 1000; done
    date -s "@$((s + 1))" >/dev/null; put K:TEXT c
    say "clock back a little"; until_ 20 isMarked K:TEXT; isMarked K:READY
    # The threads of the monitor wait for a time, not for a time of day.
    say "clock back"; date -s "@$(($(date +%s) - 3600))" >/dev/null
    uptimes=$(val M:IOC_UPTIMES); until_ 20 differs M:IOC_UPTIMES "$uptimes" && echo "goes on"
    # The host's clock went back, so a new time stamp may be earlier than the last one: some processings are not seen.
    say "clock back marks"; until_ 20 isMarked K:READY
    cmd "exit"; until_ 20 eval '! [ -d /proc/$MONPID ]'
    wait $MONPID; say exit; echo $?
    say alive; get -t K:CNT; get -t P:CNT
    end
}
if [ "$(val M:STATE)" = Failed ] || ! [ -d /proc/$MONPID ]; then
    show STATE; line STATE_MSG
    if [ -d /proc/$MONPID ]; then
        cmd "ebpfMonReport 1"
        cmd "exit"; until_ 20 eval '! [ -d /proc/$MONPID ]'
    fi
    end
fi
until_ 60 eval '[ "$(val M:IOC_CNT)" = 2 ]' &&
    until_ 60 eval 'case $(val M:IOC_LEVELS) in "256 trace trace "*) true;; *) false;; esac' || isBad=1
running
show STATE IOC_NAMES IOC_LEVELS IOC_NOTES; line STATE_MSG
[ -z "$isBad" ] || finish # without IOCs all other checks would fail, too
queries
grep -q ' start-only' /proc/cmdline && finish

# counts at level trace
counters before; work 40 "SCAN_NAMES SCAN_PERIODS SCAN_LOADS IOC_CBLOW_WAITS"; counters after
puts
put K:ODLY.PROC 1; put K:SET 44
until_ 20 tells CHAIN_LOG "K:SET *by put by root@kernels caput"
until_ 20 tells CHAIN_LOG "K:ODLY *3 records in 2 steps"
text CHAIN_LOG
# a hang
# More than once: on a busy host, reading the IOC's memory may take too long, and then the record stays unknown.
for n in 1 2 3; do
    put K:SLEEP.PROC 1 &
    until_ 20 more M:HANG_CNT 1
    if [ "$(uname -m)" != x86_64 ]; then # where the monitor reads no stacks
        within 2 tells "IOC_EVENT_LAST.VAL\$" "K:SLEEP* hangs since " && break
    fi
    within 2 tells "IOC_EVENT_LAST.VAL\$" "K:SLEEP:BUSY hangs since *sleepFor" && within 2 tells HANG_STACKS sleepFor && break
    until_ 20 has M:HANG_CNT 0
done
line IOC_EVENT_LAST; text HANG_STACKS
until_ 20 has M:HANG_CNT 0
until_ 20 like M:CHAIN_TOP_NAMES K:SLEEP
show CHAIN_TOP_NAMES CHAIN_TOP_CNTS CHAIN_TOP_MEANS
# counts at each level
for l in chains counts; do level $l; counters "$l"; work 5; counters "$l after"; done
level puts; putLast
level off; work 5
level counts; counters again; work 5; counters "again after"
level trace; counters "trace"; work 5; counters "trace after"
# An IOC ends and comes back.
kill -9 $IOCPID; until_ 20 more M:IOC_GONE_CNT 1; say gone; get -t -S "M:IOC_EVENT_LAST.VAL\$"
ioc; until_ 40 more K:READY 1; until_ 30 eval '[ "$(val M:IOC_GONE_CNT)" = 0 ]'
until_ 30 eval 'case "$(val M:IOC_LEVELS)" in *trace*) true;; *) false;; esac'
counters "restarted"; work 5; counters "restarted after"
show IOC_GONE_CNT IOC_RESTART_CNT
finish
