/* SPDX-License-Identifier: BSD-3-Clause */
#include <linux/capability.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ebpfMon.h"

#define NICE_MOST 30 /* RLIMIT_NICE for nice -10 (common/worker.c): 20 - nice, getrlimit(2) */

/* Takes CAP_SYS_NICE away from this thread, and so from all that it starts. */
static void dropNiceCapability(void)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    const uint32_t keep = ~(1u << CAP_SYS_NICE);

    if (syscall(SYS_capget, &header, data))
        return;
    data[0].effective &= keep;
    data[0].permitted &= keep;
    data[0].inheritable &= keep;
    syscall(SYS_capset, &header, data);
}

void ebpfMonRealTimeGiveUp(void)
{
    struct rlimit nice = { NICE_MOST, NICE_MOST }, none = { 0, 0 }, now;

    /* Without the capability only the limit allows it. Only who may raise it, as root, needs that. */
    if (getrlimit(RLIMIT_NICE, &now) == 0 && now.rlim_cur < NICE_MOST)
        setrlimit(RLIMIT_NICE, &nice);
    setrlimit(RLIMIT_RTPRIO, &none);
    dropNiceCapability();
}
