/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What records and the shell can do with the logs: a table of functions. The room export/ registers it, so that the
 * room record/ does not depend on export/. One per process, as the logs are.
 */
#ifndef EBPFMON_LOGOPS_H
#define EBPFMON_LOGOPS_H

#include <stddef.h>

typedef enum {
    ebpfMonLogOff,
    ebpfMonLogChanges, /* puts that change the value, and puts that failed */
    ebpfMonLogAll,
    ebpfMonLogBurst    /* all; but quick puts to one PV become one line at their end */
} ebpfMonLogMode;

/* The mode with this name, or with this number of caPutLog (-1 off, 0 changes, 1 burst, 2 all). -1: there is none. */
int ebpfMonLogModeParse(const char *name);
const char *ebpfMonLogModeName(ebpfMonLogMode mode);

typedef struct {
    /* Writes JSON lines to a file. maxMB, hours: the file is rotated when it has this size or age; 0: never. keep:
     * number of rotated files that stay. */
    long (*json)(const char *file, double maxMB, double hours, int keep, ebpfMonLogMode mode);
    /* Writes lines in the format of caPutLog. target: a file (with a "/" in its name), host[:port], or "PV". prefix:
     * stands before each line; %i is the IOC. */
    long (*caPutLog)(const char *target, int json, ebpfMonLogMode mode, const char *prefix);
    /* Sets a pair of caPutLog's JSON metadata. An empty value removes the key. */
    long (*metadata)(const char *key, const char *value);
    /* Rotates all files now. */
    long (*rotate)(void);
    void (*resetLost)(void);
    void (*report)(int level);
    /* Sends puts, counts and spans to a collector. url: its base, or "off"; signals: some of "logs,metrics,traces";
     * headers: "Name=value,…", other characters as %XX. */
    long (*otlp)(const char *url, const char *signals, const char *headers);
    /* Sends spans to Zipkin. url: the whole URL, or "off". */
    long (*zipkin)(const char *url);
    void (*otlpReport)(int level);
} ebpfMonLogOps;

/* Never NULL: before the room export/ has registered its functions, every function fails and says so. Any thread. */
const ebpfMonLogOps *ebpfMonLogOpsGet(void);
void ebpfMonLogOpsRegister(const ebpfMonLogOps *ops);

#endif
