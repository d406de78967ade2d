/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that writes uses to the database: every ten seconds what is due, as one batch. A file that cannot be written
 * is told (USAGE_STATE, USAGE_MSG, error log), tried again each minute, and stops nobody: the notes stay in memory as long
 * as there is room.
 */
#ifndef EBPFMON_USEKEEPER_H
#define EBPFMON_USEKEEPER_H

#include <stddef.h>

#include "usage/useNotes.h"
#include "watch/target.h"

#define EBPFMON_USAGE_MEGABYTES 256 /* of the file, unless another size is given */

typedef struct {
    char     file[256];  /* "": uses are not kept */
    unsigned megabytes;
} ebpfMonUsageConf;

/* megabytes 0: the default. 0, or -1: "why"; then the configuration is as it was. */
int ebpfMonUsageConfSet(ebpfMonUsageConf *conf, const char *file, int megabytes, char *why, size_t size);

typedef struct ebpfMonUseKeeper ebpfMonUseKeeper;

typedef struct {
    /* Nonzero: the clients of this IOC were read at the last look. */
    int  (*areClientsRead)(void *arg, uint32_t iocId);
    void *arg;
} ebpfMonUseKeeperCalls;

/* Targets and notes stay the caller's, the rest is copied. NULL without memory. */
ebpfMonUseKeeper *ebpfMonUseKeeperNew(ebpfMonTargets *targets, ebpfMonUseNotes *notes, const ebpfMonUsageConf *conf,
                                      const ebpfMonUseKeeperCalls *calls);
void ebpfMonUseKeeperFree(ebpfMonUseKeeper *keeper); /* NULL does no harm */

/* Starts the thread, if there is a file. 0, or -1 without memory. */
int ebpfMonUseKeeperStart(ebpfMonUseKeeper *keeper);
/* Writes what is left, and ends it: as ebpfMonWorkerStop. */
int ebpfMonUseKeeperStop(ebpfMonUseKeeper *keeper);

/* Writes all notes now, and waits for that at most "seconds". 0; -1: it is not done, or there is no file. */
int ebpfMonUseKeeperFlush(ebpfMonUseKeeper *keeper, double seconds);

#endif
