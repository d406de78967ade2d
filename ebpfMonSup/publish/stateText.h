/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a monitor that runs, and its text. */
#ifndef EBPFMON_STATETEXT_H
#define EBPFMON_STATETEXT_H

#include <stddef.h>
#include "model/stateValues.h"

typedef struct {
    const char *trouble;      /* trouble of the monitor itself; empty: none */
    unsigned    troubledIocs; /* IOCs that have a trouble in their note … */
    const char *firstTrouble; /* … and the text of the first one */
    unsigned    iocs, watched;
} ebpfMonStateInput;

/* Returns ebpfMonRunning or ebpfMonDegraded; "text" gets the value of STATE_MSG. Any thread. */
ebpfMonState ebpfMonStateFind(const ebpfMonStateInput *input, char *text, size_t size);

#endif
