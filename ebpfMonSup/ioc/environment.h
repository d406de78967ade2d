/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environment variables of a process as they are now. /proc/PID/environ has those that it was started with;
 * epicsEnvSet (st.cmd) is setenv, which makes a new list at "environ" of the C library (environ(7)). So that list is read
 * from the memory of the process, and the file only where it cannot be found.
 */
#ifndef EBPFMON_ENVIRONMENT_H
#define EBPFMON_ENVIRONMENT_H

#include "host/memory.h"

#define EBPFMON_ENV_MAX   4096       /* variables that are read */
#define EBPFMON_ENV_BYTES (256 * 1024) /* of all of them; the rest is left out */

typedef struct {
    char    *text;     /* "NAME=value", each with its NUL; as the process has them, so of any bytes */
    size_t   size;
    unsigned count;
    int      isOfStart; /* those that it was started with */
} ebpfMonEnvironment;

/* 0; -1: it cannot be read, or no memory. "mem" is a reader of this process. May take a second. */
int ebpfMonEnvironmentRead(pid_t pid, ebpfMonMem *mem, ebpfMonEnvironment *env);
void ebpfMonEnvironmentFree(ebpfMonEnvironment *env);

/* The value of a variable; NULL: there is none. */
const char *ebpfMonEnvironmentGet(const ebpfMonEnvironment *env, const char *name);

#endif
