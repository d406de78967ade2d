/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environment variables of a process as they are now. /proc/PID/environ has only the variables with which the
 * process was started. epicsEnvSet (in st.cmd) calls setenv, which makes a new list at "environ" of the C library
 * (environ(7)). So this module reads that list from the memory of the process; only if it cannot find the list, it
 * reads the file.
 */
#ifndef EBPFMON_ENVIRONMENT_H
#define EBPFMON_ENVIRONMENT_H

#include "host/memory.h"

#define EBPFMON_ENV_MAX   4096       /* variables that are read */
#define EBPFMON_ENV_BYTES (256 * 1024) /* of all of them; the rest is left out */

typedef struct {
    char    *text;     /* "NAME=value", each with its NUL; any bytes, because another process made them */
    size_t   size;
    unsigned count;
    int      isOfStart; /* these are the variables with which the process was started */
} ebpfMonEnvironment;

/* 0; -1: it cannot be read, or no memory. "mem" is a reader of this process. May take a second. */
int ebpfMonEnvironmentRead(pid_t pid, ebpfMonMem *mem, ebpfMonEnvironment *env);
void ebpfMonEnvironmentFree(ebpfMonEnvironment *env);

/* The value of a variable; NULL: there is none. */
const char *ebpfMonEnvironmentGet(const ebpfMonEnvironment *env, const char *name);

#endif
