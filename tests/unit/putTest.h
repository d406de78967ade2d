/* SPDX-License-Identifier: BSD-3-Clause */
/* A put for the tests of export. */
#ifndef EBPFMON_PUTTEST_H
#define EBPFMON_PUTTEST_H

#include <stdio.h>
#include <string.h>

#include "model/put.h"

static inline ebpfMonPut somePut(unsigned number)
{
    ebpfMonPut p = {
        .count = 1, .oldCount = 1, .hasOld = 1, .isNumber = 1, .oldIsNumber = 1, .number = number,
        .oldNumber = number + 1, .through = ebpfMonByCa, .result = ebpfMonPutOk, .seen = EBPFMON_SEEN_INSIDE,
    };

    p.time.secPastEpoch = 1163575683u; /* 2026-11-15 07:28:03 UTC */
    p.time.nsec = 123456789;
    strcpy(p.ioc, "vac1");
    strcpy(p.pv, "VAC:SET");
    sprintf(p.val, "%u", number);
    sprintf(p.old, "%u", number + 1);
    strcpy(p.user, "alice");
    strcpy(p.host, "opi1");
    return p;
}

#endif
