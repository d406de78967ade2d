/* SPDX-License-Identifier: BSD-3-Clause */
#include "ioc/baseOffsets.h"

/* 7.0.3.1 and 7.0.8.1 have the same; compared in their sources. */
static const ebpfMonBaseOffsets base7 = {
    .clRecvBuf = 40, .clRecvStk = 48, .clRecvCnt = 56, .clAddr = 168, .clUser = 208, .clHost = 216,
    .clChans = 96, .clPending = 120,
    .ciuClient = 40, .ciuDbch = 72, .ciuAs = 80,
    .asAccess = 60,
    .ppnChan = 48, .ppnUsr = 80,
};

const ebpfMonBaseOffsets *ebpfMonBaseOffsetsOf(const char *version)
{
    (void)version; /* one layout so far; the next release that differs gets its line here */
    return &base7;
}
