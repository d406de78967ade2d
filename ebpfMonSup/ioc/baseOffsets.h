/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the members lie of EPICS Base's own private structs, which no dbFldDes describes. */
#ifndef EBPFMON_BASEOFFSETS_H
#define EBPFMON_BASEOFFSETS_H

#include <stdint.h>

typedef struct {
    uint16_t clAddr, clUser, clHost, clRecvBuf, clRecvStk, clRecvCnt; /* rsrv/server.h: struct client */
    uint16_t clChans, clPending;                           /* … its chanList, chanPendingUpdateARList */
    uint16_t ciuClient, ciuDbch, ciuAs;                    /* rsrv/server.h: struct channel_in_use */
    uint16_t asAccess;                                     /* asLib.h: struct asgClient */
    uint16_t ppnChan, ppnUsr;                              /* dbNotify.h: struct processNotify */
} ebpfMonBaseOffsets;

/* For a release as "7.0.8.1". The kernel part checks what it finds there: an address family, and that a
 * channel leads to the record that is written. */
const ebpfMonBaseOffsets *ebpfMonBaseOffsetsOf(const char *version);

#endif
