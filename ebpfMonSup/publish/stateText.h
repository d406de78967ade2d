/* SPDX-License-Identifier: BSD-3-Clause */
/* Which state the monitor is in while it runs, and how it says so. */
#ifndef EBPFMON_STATETEXT_H
#define EBPFMON_STATETEXT_H

#include <stddef.h>
#include "model/stateValues.h"

typedef struct {
    const char *trouble;      /* of the monitor itself; empty: none */
    unsigned    troubledIocs; /* IOCs whose note is a trouble … */
    const char *firstTrouble; /* … and that of the first */
    unsigned    iocs, watched;
} ebpfMonStateInput;

/* ebpfMonRunning or ebpfMonDegraded, with STATE_MSG in "text". */
ebpfMonState ebpfMonStateFind(const ebpfMonStateInput *input, char *text, size_t size);

#endif
