/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/lazyMutex.h"
#include "common/text.h"
#include "model/audits.h"

/* One per process, for the same reason as in losses.c. */
static ebpfMonLazyMutex auditLock = EBPFMON_LAZY_MUTEX;
static ebpfMonAudits found; /* under the lock */

void ebpfMonAuditsAdd(ebpfMonAudit kind, uint64_t count, const char *about)
{
    ebpfMonLazyMutexLock(&auditLock);
    found.count[kind] += count;
    found.lastKind = kind;
    ebpfMonTextCopy(found.last, sizeof(found.last), about);
    epicsTimeGetCurrent(&found.time);
    ebpfMonLazyMutexUnlock(&auditLock);
}

void ebpfMonAuditsGet(ebpfMonAudits *audits)
{
    ebpfMonLazyMutexLock(&auditLock);
    *audits = found;
    ebpfMonLazyMutexUnlock(&auditLock);
}

void ebpfMonAuditsReset(void)
{
    ebpfMonLazyMutexLock(&auditLock);
    memset(&found, 0, sizeof(found));
    ebpfMonLazyMutexUnlock(&auditLock);
}

const char *ebpfMonAuditName(ebpfMonAudit kind)
{
    switch (kind) {
    case ebpfMonAuditPutNotInside: return "the IOC answered a put that was not seen in it";
    case ebpfMonAuditPutNumber:    return "a put of this IOC was not seen";
    case ebpfMonAuditProcessings:  return "a trap counts other processings";
    case ebpfMonAuditRootSum:      return "its chains processed otherwise than its records did";
    case ebpfMonAuditHistogram:    return "its histogram does not have all of its chains";
    case ebpfMonAuditKinds:        break;
    }
    return "";
}
