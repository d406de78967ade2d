/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What records and the shell may ask of the logs: a table of functions. The room export/ registers it, so that the
 * record room need not know export/. One per process, as the logs are.
 */
#ifndef EBPFMON_LOGOPS_H
#define EBPFMON_LOGOPS_H

#include <stddef.h>

typedef enum {
    ebpfMonLogOff,
    ebpfMonLogChanges, /* puts that change the value, and those that failed */
    ebpfMonLogAll,
    ebpfMonLogBurst    /* all, but puts to one PV in quick succession are one line at the end */
} ebpfMonLogMode;

/* The mode called "name", or known to caPutLog by that number (-1 off, 0 changes, 1 burst, 2 all); -1: none. */
int ebpfMonLogModeParse(const char *name);
const char *ebpfMonLogModeName(ebpfMonLogMode mode);

typedef struct {
    /* JSON lines to a file. maxMB, hours: rotated when it has become so large, so old; 0: not. keep: rotated files. */
    long (*json)(const char *file, double maxMB, double hours, int keep, ebpfMonLogMode mode);
    /* caPutLog's format. target: a file (has a "/"), host[:port], or "PV". prefix: before each line, %i is the IOC. */
    long (*caPutLog)(const char *target, int json, ebpfMonLogMode mode, const char *prefix);
    /* caPutLog's JSON metadata; an empty value takes the key away. */
    long (*metadata)(const char *key, const char *value);
    /* Begins all files anew. */
    long (*rotate)(void);
    void (*resetLost)(void);
    void (*report)(int level);
    /* Puts, counts and spans to a collector. url: its base, or "off"; signals: some of "logs,metrics,traces"; headers:
     * "Name=value,…" with %XX for what else. */
    long (*otlp)(const char *url, const char *signals, const char *headers);
    /* Spans to Zipkin. url: the whole, or "off". */
    long (*zipkin)(const char *url);
    void (*otlpReport)(int level);
} ebpfMonLogOps;

/* Never NULL: before they are registered, every operation says so and fails. Any thread. */
const ebpfMonLogOps *ebpfMonLogOpsGet(void);
void ebpfMonLogOpsRegister(const ebpfMonLogOps *ops);

#endif
