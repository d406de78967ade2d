/* SPDX-License-Identifier: BSD-3-Clause */
/* The time stamp of a record (dbCommon.time) as the kernel part reads it, as one number. */
#ifndef EBPFMON_STAMP_H
#define EBPFMON_STAMP_H

#include <stdint.h>
#include <epicsTime.h>

/* ns since 1970, UTC. "stamp": seconds since 1990 in the low 32 bits, nanoseconds in the high ones (epicsTimeStamp). */
static inline int64_t ebpfMonStampToUnix(uint64_t stamp)
{
    return (int64_t)(((stamp & 0xffffffff) + POSIX_TIME_AT_EPICS_EPOCH) * 1000000000u + (stamp >> 32));
}

#endif
