/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include <errlog.h>

#include "model/published.h"
#include "publish/auditText.h"

void ebpfMonAuditTextPublish(ebpfMonAuditText *text)
{
    ebpfMonPublished *published;
    char line[256], when[24] = "";
    ebpfMonAuditResults results;
    uint64_t sum = 0;

    ebpfMonAuditsGet(text->audits, &results);
    for (int i = 0; i < ebpfMonAuditKinds; i++)
        sum += results.count[i];
    if (sum) {
        epicsTimeToStrftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &results.time);
        snprintf(line, sizeof(line), "%llu disagree; last %s %s: %s", (unsigned long long)sum, when, results.last,
                 ebpfMonAuditName(results.lastKind));
    } else {
        snprintf(line, sizeof(line), "all cross-checks agree");
    }
    published = ebpfMonPublishedLock();
    snprintf(published->audit.text, sizeof(published->audit.text), "%s", line);
    published->audit.count = sum;
    ebpfMonPublishedUnlock();
    if (!text->hasFound && sum)
        errlogSevPrintf(errlogMinor, "ebpfMon: a cross-check failed: %s. Please report this. AUDIT_CNT counts them; "
                        "LOST_RESET resets it\n", line);
    text->hasFound = sum != 0;
}
