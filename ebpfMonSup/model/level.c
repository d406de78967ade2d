/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of the levels, which the operator types and IOC_LEVELS shows. */
#include <epicsString.h>

#include "model/level.h"

static const char * const levelName[ebpfMonLevelCount] = {"off", "puts", "counts", "chains", "trace"};

const char *ebpfMonLevelName(ebpfMonLevel level)
{
    return (unsigned)level < ebpfMonLevelCount ? levelName[level] : "?";
}

int ebpfMonLevelParse(const char *name)
{
    int level;

    if (!name)
        return -1;
    for (level = 0; level < ebpfMonLevelCount; level++)
        if (epicsStrCaseCmp(name, levelName[level]) == 0)
            return level;
    return -1;
}
