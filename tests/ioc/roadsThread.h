/* SPDX-License-Identifier: BSD-3-Clause */
/* A named thread that does one job at a time. The command that orders a job waits until it is done. */
#ifndef ROADS_THREAD_H
#define ROADS_THREAD_H

#include <epicsEvent.h>

typedef struct {
    const char *name;
    long (*job)(const char *pv, const char *value, const char *how); /* returns 0, or an error status */
    epicsEventId go, done;
    const char *pv, *value, *how;
    long status;
} roadsThread;

/* Lets the thread do its job, and waits for it. Starts the thread at the first call. NULL means "". If the job fails,
 * sets the error status of the shell. */
void roadsOrder(roadsThread *thread, const char *pv, const char *value, const char *how);

#endif
