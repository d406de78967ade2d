/* SPDX-License-Identifier: BSD-3-Clause */
/* One named thread that does one job at a time, in which a command waits until it is done. */
#ifndef ROADS_THREAD_H
#define ROADS_THREAD_H

#include <epicsEvent.h>

typedef struct {
    const char *name;
    long (*job)(const char *pv, const char *value, const char *how); /* 0: done */
    epicsEventId go, done;
    const char *pv, *value, *how;
    long status;
} roadsThread;

/* NULL is taken for "". Sets the shell's error. */
void roadsOrder(roadsThread *thread, const char *pv, const char *value, const char *how);

#endif
