/* SPDX-License-Identifier: BSD-3-Clause */
/* A struct link with a pv_link, as tests make it in their own memory. */
#ifndef EBPFMON_BASELINKS_H
#define EBPFMON_BASELINKS_H

#include "ioc/baseLayout.h"

struct layoutPvLink { /* since 3.16.0.1 */
    uint64_t precord;
    int16_t  type;
    uint16_t flags;
    uint32_t pad;
    uint64_t lset, text;
    uint64_t backNext, backPrev; /* backlinknode */
    uint64_t pvname, pvt, getCvt;
    int16_t  pvlMask, lastGetdbrType;
};

struct layoutOldLink { /* in 3.14.12 and 3.15 */
    uint64_t pvname, precord, pvt, getCvt;
    int16_t  pvlMask, lastGetdbrType;
    uint32_t pad;
    int16_t  type, pad2[3];
    uint64_t text;
};

#endif
