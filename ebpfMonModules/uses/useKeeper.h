/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that writes uses to the file: every ten seconds the notes that are due. If the file cannot be written,
 * USAGE_STATE, USAGE_MSG and the error log say so, and the thread tries again once a minute. Until then the notes stay
 * in memory, as long as there is room; no other thread waits.
 */
#ifndef EBPFMON_USEKEEPER_H
#define EBPFMON_USEKEEPER_H

#include <stddef.h>

#include "ebpfMonModule.h"
#include "model/published.h"
#include "uses/useNotes.h"
#include "watch/target.h"

#define EBPFMON_NO_USAGE "uses are not kept: ebpfMonUsage begins it"

/* What the PVs show. */
typedef struct {
    ebpfMonLogState state;
    char     message[256];
    int64_t  rows;       /* uses in the file: each is a PV with a kind of use */
    uint64_t lost;       /* uses for which there was no room in memory */
} ebpfMonUsageValues;

#define EBPFMON_USAGE_MEGABYTES 256 /* the default of the largest size of the file */

typedef struct {
    char     file[256];  /* "": uses are not kept */
    unsigned megabytes;
} ebpfMonUsageConf;

/* Sets the configuration; megabytes 0: the default. 0, or -1: nothing is changed, and "why" says what is wrong. The
 * shell's thread, before the keeper is made. */
int ebpfMonUsageConfSet(ebpfMonUsageConf *conf, const char *file, int megabytes, char *why, size_t size);

typedef struct ebpfMonUseKeeper ebpfMonUseKeeper;

typedef struct {
    /* Nonzero: the last look could read the clients of this IOC. Called by the keeper's thread, without a lock. */
    int  (*findWays)(void *arg, uint32_t iocId);
    void *arg;
} ebpfMonUseKeeperCalls;

/* "conf" and "calls" are copied, and the rest stays the caller's. The keeper's thread writes "shown", under
 * ebpfMonModuleLock. NULL without memory. */
ebpfMonUseKeeper *ebpfMonUseKeeperNew(const ebpfMonModule *module, ebpfMonUsageValues *shown, ebpfMonTargets *targets,
                                      ebpfMonUseNotes *notes, const ebpfMonUsageConf *conf,
                                      const ebpfMonUseKeeperCalls *calls);
void ebpfMonUseKeeperFree(ebpfMonUseKeeper *keeper); /* the thread has ended. NULL does no harm */

/* Starts the thread, if there is a file. 0, or -1 without memory. */
int ebpfMonUseKeeperStart(ebpfMonUseKeeper *keeper);
/* Makes the thread write all notes and end. Returns what ebpfMonWorkerStop returns; NULL: 0. */
int ebpfMonUseKeeperStop(ebpfMonUseKeeper *keeper);

/* Makes the thread write all notes now, and waits for this, but at most "seconds". 0, or -1: not all are written, or
 * there is no file. Any thread but the keeper's. */
int ebpfMonUseKeeperFlush(ebpfMonUseKeeper *keeper, double seconds);

#endif
