/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "export/export.h"
#include "model/published.h"
#include "model/filter.h"
#include "rules/rules.h"
#include "watch/requests.h"
#include "publish/putPublisher.h"

/* RECORD.FIELD in two. */
static void split(const ebpfMonPut *put, char record[sizeof(put->pv)], const char **field)
{
    char *dot;

    snprintf(record, sizeof(put->pv), "%s", put->pv);
    dot = strrchr(record, '.');
    *field = "VAL";
    if (dot) {
        *dot = 0;
        *field = dot + 1;
    }
}

static void count(ebpfMonPublished *published, const ebpfMonPut *put)
{
    unsigned i = 0;

    while (i < published->putIocs && strcmp(published->putIoc[i].name, put->ioc) != 0)
        i++;
    if (i == EBPFMON_IOCS_MAX)
        i--;
    if (i == published->putIocs) {
        published->putIocs++;
        snprintf(published->putIoc[i].name, sizeof(published->putIoc[i].name), "%s",
                 i == EBPFMON_IOCS_MAX - 1 ? "others" : put->ioc);
    }
    published->putIoc[i].puts++;
    published->putIoc[i].denied += put->result == ebpfMonPutDenied;
    published->putCount++;
    published->putDenied += put->result == ebpfMonPutDenied;
}

void ebpfMonPutPublisherPublish(ebpfMonPut *put)
{
    ebpfMonFilter f;
    ebpfMonPublished *published;
    char record[sizeof(put->pv)];
    const char *field;
    int watched = 0;

    ebpfMonRulesJudge(put); /* every put, whatever the filter shows */
    ebpfMonPublishedAddBad(put);
    split(put, record, &field);
    ebpfMonRequestsGetFilter(&f);
    if (!ebpfMonFilterWantsPut(&f, record, field, put->host, put->user))
        return;
    published = ebpfMonPublishedLock();
    count(published, put);
    published->putHead = (published->putHead + 1) % EBPFMON_PUTS_MAX;
    if (published->putRecent < EBPFMON_PUTS_MAX)
        published->putRecent++;
    published->put[published->putHead] = *put;
    published->time[ebpfMonGroupPuts] = put->time;
    for (unsigned i = 0; i < published->watchCount; i++) {
        ebpfMonWatchRow *w = &published->watch[i];

        if (strcmp(w->record, record) != 0 && strcmp(w->real, record) != 0)
            continue;
        w->putCount++;
        ebpfMonPutLine(put, w->putLast, sizeof(w->putLast));
        w->putTime = put->time;
        published->time[ebpfMonGroupWatch] = put->time;
        watched = 1;
    }
    ebpfMonPublishedUnlock();
    ebpfMonExportPut(put);
    ebpfMonPublishedNotify(ebpfMonGroupPuts);
    if (watched)
        ebpfMonPublishedNotify(ebpfMonGroupWatch);
}
