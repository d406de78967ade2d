/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where messages begin in bytes that were met in the middle. One header proves little, two that follow each other
 * much; a header where a segment begins lies between.
 */
#ifndef EBPFMON_RESYNC_H
#define EBPFMON_RESYNC_H

#include "wire/assembly.h"

#define EBPFMON_RETAIN 2048 /* bytes of what may be a message, while searching: bounds what is looked at twice */

typedef enum { ebpfMonResyncNone, ebpfMonResyncPerhaps, ebpfMonResyncFound } ebpfMonResyncResult;

/* Where in the buffer a message begins. "segAt": where the last segment does. For Perhaps and None "offset" is where
 * what is still needed begins. "trusted": the protocol is known, or likely. */
ebpfMonResyncResult ebpfMonResync(const ebpfMonProtocol *protocol, int fromServer, const ebpfMonAssembly *assembly,
    size_t segAt, int trusted, size_t *offset);

#endif
