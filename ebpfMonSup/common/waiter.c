/* SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/waiter.h"

#define LONGEST_S 1e9

int ebpfMonWaiterMake(ebpfMonWaiter *waiter)
{
    waiter->file = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return waiter->file < 0 ? -1 : 0;
}

void ebpfMonWaiterEnd(ebpfMonWaiter *waiter)
{
    if (waiter->file >= 0)
        close(waiter->file);
    waiter->file = -1;
}

void ebpfMonWaiterWake(const ebpfMonWaiter *waiter)
{
    eventfd_write(waiter->file, 1);
}

int ebpfMonWaiterWait(const ebpfMonWaiter *waiter, int fd, double seconds, int *woken)
{
    double s = seconds > 0 ? (seconds < LONGEST_S ? seconds : LONGEST_S) : 0;
    struct timespec most = { .tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9) };
    struct pollfd wait[] = { { .fd = waiter->file, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
    eventfd_t count;

    *woken = 0;
    if (ppoll(wait, 2, &most, NULL) <= 0)
        return 0;
    *woken = wait[0].revents != 0;
    if (*woken)
        eventfd_read(waiter->file, &count);
    return *woken || wait[1].revents;
}
