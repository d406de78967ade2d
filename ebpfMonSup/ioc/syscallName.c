/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <sys/syscall.h>

#include "ioc/syscallName.h"

/* Numbers differ by machine, and old ones are missing on new machines. */
static const struct {
    long number;
    const char *name;
} calls[] = {
    { SYS_read, "read" }, { SYS_write, "write" }, { SYS_readv, "readv" }, { SYS_writev, "writev" },
    { SYS_pread64, "pread64" }, { SYS_pwrite64, "pwrite64" }, { SYS_openat, "openat" }, { SYS_ioctl, "ioctl" },
    { SYS_futex, "futex" }, { SYS_nanosleep, "nanosleep" }, { SYS_clock_nanosleep, "clock_nanosleep" },
    { SYS_recvfrom, "recvfrom" }, { SYS_recvmsg, "recvmsg" }, { SYS_sendto, "sendto" }, { SYS_sendmsg, "sendmsg" },
    { SYS_connect, "connect" }, { SYS_accept, "accept" }, { SYS_accept4, "accept4" }, { SYS_ppoll, "ppoll" },
    { SYS_pselect6, "pselect6" }, { SYS_epoll_pwait, "epoll_pwait" }, { SYS_fsync, "fsync" },
    { SYS_fdatasync, "fdatasync" }, { SYS_wait4, "wait4" }, { SYS_flock, "flock" }, { SYS_fcntl, "fcntl" },
    { SYS_rt_sigtimedwait, "rt_sigtimedwait" }, { SYS_sched_yield, "sched_yield" },
#ifdef SYS_poll
    { SYS_poll, "poll" }, { SYS_select, "select" }, { SYS_epoll_wait, "epoll_wait" }, { SYS_open, "open" },
    { SYS_pause, "pause" },
#endif
};

void ebpfMonSyscallName(long number, char *buf, size_t size)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (calls[i].number == number) {
            snprintf(buf, size, "%s", calls[i].name);
            return;
        }
    snprintf(buf, size, "system call %ld", number);
}
