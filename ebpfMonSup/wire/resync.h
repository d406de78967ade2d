/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds where messages begin in a stream that began before we watched. One header proves little, two that follow each
 * other prove much. A header at the begin of a segment is between both.
 */
#ifndef EBPFMON_RESYNC_H
#define EBPFMON_RESYNC_H

#include "wire/assembly.h"

#define EBPFMON_RETAIN 2048 /* bytes that are kept while a message is searched for: limits how much is searched twice */

typedef enum { ebpfMonResyncNone, ebpfMonResyncPerhaps, ebpfMonResyncFound } ebpfMonResyncResult;

/* Finds where in the buffer a message begins: *offset. For Perhaps and None, *offset is the begin of the bytes that are
 * still needed. "segAt": where the last segment begins. "trusted": nonzero if the protocol is known, or likely. */
ebpfMonResyncResult ebpfMonResync(const ebpfMonProtocol *protocol, int fromServer, const ebpfMonAssembly *assembly,
    size_t segAt, int trusted, size_t *offset);

#endif
