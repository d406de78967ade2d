/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of ebpfMon.h, for other modules. Other modules do not include our own headers, so these functions
 * copy values into structs of ebpfMon.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <epicsString.h>
#include <dbDefs.h>
#include <errlog.h>

#include "ebpfMon.h"
#include "model/published.h"
#include "model/ops.h"
#include "rules/rules.h"
#include "record/filterSub.h"
#include "record/shellCommand.h"

void ebpfMonHostGet(ebpfMonHostStatus *status)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();

    memset(status, 0, sizeof(*status));
    status->state = (int)published->state;
    ebpfMonTextCopy(status->message, sizeof(status->message), published->stateMessage);
    status->iocs = published->iocs.count;
    status->puts = published->puts.count;
    status->denied = published->puts.denied;
    status->processings = published->processings.count;
    status->lost = published->losses.count;
    status->cost = isnan(published->costs.iocs) ? 0 : published->costs.iocs;
    ebpfMonPublishedUnlock();
}

int ebpfMonRecordWatch(const char *record)
{
    return ebpfMonPublishedAddWatch(record) < 0 ? -1 : 0;
}

int ebpfMonRecordGet(const char *record, ebpfMonRecordStatus *status)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    const ebpfMonWatchRow *row = NULL;
    unsigned i;

    memset(status, 0, sizeof(*status));
    for (i = 0; i < published->watched.count && !row; i++)
        if (strcmp(published->watched.row[i].record, record) == 0)
            row = &published->watched.row[i];
    if (row) {
        status->found = row->found;
        status->atLeast = row->atLeast;
        status->processings = row->procCount;
        status->processRate = row->procRate;
        status->chains = row->chains;
        status->latencyMean = row->latMean;
        status->latencyP99 = row->latP99;
        status->latencyMax = row->latMax;
        status->puts = row->putCount;
        status->putTime = row->putTime;
        ebpfMonTextCopy(status->putLine, sizeof(status->putLine), row->putLast);
    }
    ebpfMonPublishedUnlock();
    return row ? 0 : -1;
}

/* Unlocks the published values, and writes the line of a put of them. 0, or -1: "put" is NULL. */
static int writeAndUnlock(const ebpfMonPut *put, char *line, size_t size)
{
    ebpfMonPut copy;

    if (put)
        copy = *put;
    ebpfMonPublishedUnlock();
    if (!put)
        return -1;
    ebpfMonPutLine(&copy, line, size);
    return 0;
}

int ebpfMonPutGet(unsigned n, char *line, size_t size)
{
    return writeAndUnlock(ebpfMonPublishedGetPut(ebpfMonPublishedLock(), n), line, size);
}

int ebpfMonFilterSet(const char *part, const char *value, char *text, size_t size)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    static const char * const parts[] = {
        "ioc", "record", "field", "host", "user", "level", "slow", "sample", "budget", "timed"
    };
    ebpfMonFilter filter;
    unsigned in;

    _Static_assert(NELEMENTS(parts) == EBPFMON_FILTER_INPUTS, "a name for each input");
    for (in = 0; in < EBPFMON_FILTER_INPUTS && strcmp(part, parts[in]) != 0; in++)
        ;
    if (in == EBPFMON_FILTER_INPUTS) {
        snprintf(text, size, "the filter has no part \"%s\": ioc, record, field, host, user, level, slow, sample, "
                 "budget or timed", part);
        return -1;
    }
    monitor->getFilter(monitor->arg, &filter);
    if (ebpfMonFilterParse(&filter, in, value, text, size))
        return -1;
    return ebpfMonFilterCommand(&filter, 1u << in, text, size) ? -1 : 0;
}

int ebpfMonLevelSet(const char *iocPattern, const char *level)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    int number = ebpfMonLevelParse(level);
    ebpfMonOpStatus status;
    char why[160] = "";

    if (number < 0 && (!level || epicsStrCaseCmp(level, "filter") != 0)) {
        errlogSevPrintf(errlogMajor, "ebpfMonLevelSet: there is no level \"%s\": off, puts, counts, chains, "
                        "trace or filter\n", level ? level : "");
        return -1;
    }
    status = monitor->setLevel(monitor->arg, iocPattern, number, why, sizeof(why));
    return ebpfMonShellCheckOp("ebpfMonLevelSet", status, why);
}

const char *ebpfMonVersionGet(void)
{
    return EBPFMON_VERSION;
}

int ebpfMonRulesLoad(const char *file, char *text, size_t size)
{
    return ebpfMonRulesFileLoad(ebpfMonOpsGet()->rules, file, text, size);
}

int ebpfMonUnexpectedGet(unsigned n, char *line, size_t size)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    const ebpfMonPut *put = ebpfMonPublishedGetUnexpected(published, n);
    uint64_t number = put ? put->serial : 0;

    if (writeAndUnlock(put, line, size))
        return -1;
    ebpfMonPublishedSetUnexpectedShown(ebpfMonShownByCode, number);
    return 0;
}

unsigned ebpfMonUnexpectedAck(void)
{
    return ebpfMonPublishedAcknowledge(ebpfMonShownByCode);
}
