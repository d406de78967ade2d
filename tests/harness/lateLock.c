/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into an IOC: the thread that scans each second waits for 0.6 s between choosing a record whose name ends
 * with ":LATE" and requesting its lock (dbScan.c, scanList), as if it had lost its CPU there. It says when it begins to
 * wait.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct dbCommon; /* it begins with the name of the record */

void dbScanLock(struct dbCommon *precord)
{
    static void (*next)(struct dbCommon *);
    const char *name = strrchr((const char *)precord, ':');
    char thread[16] = "";

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "dbScanLock");
    prctl(PR_GET_NAME, thread);
    if (name && strcmp(name, ":LATE") == 0 && strcmp(thread, "scan-1") == 0) {
        printf("\nlate\n");
        fflush(stdout);
        usleep(600000);
    }
    next(precord);
}
