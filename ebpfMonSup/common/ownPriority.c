/* SPDX-License-Identifier: BSD-3-Clause */
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/ownPriority.h"
#include "ebpfMon.h"

/* Switches CAP_SYS_NICE of this thread on or off. It stays permitted, so that it can be switched on again. */
static void switchNiceCapability(int on)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    const uint32_t bit = 1u << CAP_SYS_NICE;

    if (syscall(SYS_capget, &header, data))
        return;
    data[0].effective = on ? data[0].effective | (data[0].permitted & bit) : data[0].effective & ~bit;
    syscall(SYS_capset, &header, data);
}

void ebpfMonRealTimeGiveUp(void)
{
    const struct rlimit none = { 0, 0 };

    setrlimit(RLIMIT_RTPRIO, &none);
    switchNiceCapability(0); /* threads started later inherit this */
}

int ebpfMonOwnPrioritySet(int nice)
{
    int status;

    switchNiceCapability(1);
    pthread_setschedparam(pthread_self(), SCHED_OTHER, &(struct sched_param){ .sched_priority = 0 });
    status = setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), nice);
    switchNiceCapability(0);
    return status;
}
