#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# The init program of the emulated machine for "run.py -H": how long a real-time thread of an IOC (holdThread.c) takes
# for some things when nobody watches, when the monitor watches at its default level, and while this level changes.
# hold.py judges.
. /m/common.sh
LD_PRELOAD=/m/holdThread.so HOLD_TIMES=20000 IOC=hold EPICS_CAS_SERVER_PORT=5070 \
    softIoc -D /m/softIoc.dbd -m P= -d /m/hold.db </tmp/ioc.in >/tmp/ioc.log 2>&1 &
until_ 60 more READY 1
# goThrough NUMBER NAME: one round
goThrough() {
    : >/tmp/go$1
    until_ 300 [ -s /tmp/done$1 ]
    say "$2"; cat /tmp/done$1
}
goThrough 0 alone
ebpfMon /m/hold.cmd </tmp/monitor.in >/tmp/monitor.log 2>&1 &
until_ 90 eval 'case $(val M:STATE) in ""|Starting) false;; esac'
until_ 60 like M:IOC_LEVELS chains
put M:FILTER_BUDGET 0
settle M:PROC_CNT
say level; get -t -F'|' M:IOC_LEVELS
goThrough 1 watched
# The level changes again and again.
changeLevels() {
    while :; do
        for level in puts chains; do
            put M:FILTER_LEVEL $level; until_ 60 like M:IOC_LEVELS $level
            echo >>/tmp/changes
        done
    done
}
changeLevels & changer=$!
goThrough 2 changing
kill $changer
say changes; wc -l </tmp/changes
say check; ebpfMon --check
say STATE; val M:STATE
line STATE_MSG
say log; cat /tmp/monitor.log
say dmesg; dmesg | tail -n 30
say done
sync; poweroff -f
