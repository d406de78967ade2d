/* SPDX-License-Identifier: BSD-3-Clause */
/* Put events become puts: names for addresses, texts for values, people for connections. Event thread only. */
#ifndef EBPFMON_DECODE_H
#define EBPFMON_DECODE_H

#include "ebpfMonEvent.h"
#include "model/put.h"
#include "monitor/target.h"

/* Nonzero: *put is filled. Under ebpfMonTargetsLock. "linkChanged": the links of the record may differ now. */
int ebpfMonDecodePut(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, size_t size, ebpfMonPut *put,
                     int *linkChanged);

/* Whether the link at this address of the target now is what "put" wrote: link fields are not written by
 * dbPut, whose result is seen. Sets put->result, and leaves it where the link is of a kind that has no name. */
void ebpfMonDecodeLinkResult(ebpfMonTarget *t, uint64_t linkAt, ebpfMonPut *put);

/* Wall-clock time of a monotonic one; refreshed when the clock is stepped. Any thread. */
epicsTimeStamp ebpfMonWallTime(uint64_t ktime);

#endif
