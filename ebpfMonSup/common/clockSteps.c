/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/clockSteps.h"

#define SURE_NS 1000000 /* two readings of the offset differ by less if nobody set the clock */
#define NEVER_S 4000000000 /* the time to which the timer is set: in 2096 */

void ebpfMonClockStepsBegin(ebpfMonClockSteps *steps)
{
    struct itimerspec at = { .it_value = { .tv_sec = NEVER_S } };

    steps->offset = ebpfMonClockUnixOffset();
    steps->file = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (steps->file >= 0 && timerfd_settime(steps->file, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL))
        ebpfMonClockStepsEnd(steps);
}

void ebpfMonClockStepsEnd(ebpfMonClockSteps *steps)
{
    if (steps->file >= 0)
        close(steps->file);
    steps->file = -1;
}

int ebpfMonClockStepsLook(ebpfMonClockSteps *steps)
{
    uint64_t count;
    int wasSet = steps->file >= 0 && read(steps->file, &count, sizeof(count)) < 0 && errno == ECANCELED;

    return ebpfMonClockStepsJudge(steps, wasSet, ebpfMonClockUnixOffset());
}

/* If it was set several times, it may have gone forward and back: only a clock that is later than before has gone
 * forward for sure. */
int ebpfMonClockStepsJudge(ebpfMonClockSteps *steps, int wasSet, uint64_t offset)
{
    uint64_t before = steps->offset;

    steps->offset = offset;
    return wasSet ? offset < before + SURE_NS : offset + SURE_NS < before;
}
