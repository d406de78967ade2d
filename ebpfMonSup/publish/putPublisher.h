/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a put goes when all is known of it: to the rules, the published values and the logs. Any thread. */
#ifndef EBPFMON_PUTPUBLISHER_H
#define EBPFMON_PUTPUBLISHER_H

#include "model/filter.h"
#include "model/put.h"

typedef struct ebpfMonPutPublisher ebpfMonPutPublisher;

/* What the publisher needs of others; called by the threads that publish, without locks. */
typedef struct {
    /* Copies the filter in force. */
    void (*getFilter)(void *arg, ebpfMonFilter *filter);
    /* Gets each put that passed the filter. */
    void (*log)(void *arg, const ebpfMonPut *put);
    void *arg;
} ebpfMonPutPublisherCalls;

/* "calls" is copied. NULL without memory. */
ebpfMonPutPublisher *ebpfMonPutPublisherNew(const ebpfMonPutPublisherCalls *calls);
void ebpfMonPutPublisherFree(ebpfMonPutPublisher *publisher);

/* Lets the rules judge the put, whose texts are complete. If it is unexpected it is kept until somebody
 * acknowledges it, whatever the filter says. If it passes the filter, the published values and the log get it. Tells
 * the listener. */
void ebpfMonPutPublisherPublish(ebpfMonPutPublisher *publisher, ebpfMonPut *put);

/* A put to the monitor's own PVs. The log gets it, whatever the filter says; the published values too, if it was
 * refused or passes the filter. The rules do not judge it, because the list of operators has; else each acknowledgement
 * could be an unexpected put. */
void ebpfMonPutPublisherPublishOwn(ebpfMonPutPublisher *publisher, ebpfMonPut *put);

#endif
