/* SPDX-License-Identifier: BSD-3-Clause */
/* How iocsh commands are defined here. */
#ifndef EBPFMON_SHELLDEF_H
#define EBPFMON_SHELLDEF_H

#include <iocsh.h>

/* Base before 7.0.3 has no place for the usage text. */
#ifdef IOCSHFUNCDEF_HAS_USAGE
#define USAGE(text) , text
#else
#define USAGE(text)
#endif

#define ARGS(...) (const iocshArg *[]){__VA_ARGS__}
#define ARG(name, type) &(const iocshArg){name, type}

static inline int given(const char *argument)
{
    return argument && argument[0];
}

/* What a script that stops at errors goes by. */
static inline void done(long status)
{
    iocshSetError(status ? -1 : 0);
}

#endif
