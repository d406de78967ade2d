/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose puts those of a thread were that serves several clients, when that is known. A link that such a put made write,
 * or a later step of a record that it started, has the same author, and no packet of its own. Event thread only.
 */
#ifndef EBPFMON_PUTAUTHORS_H
#define EBPFMON_PUTAUTHORS_H

#include "put/putClients.h"

/* Names a put: its thread, and the low half of its id there. */
#define EBPFMON_PUT_NUMBER(tid, id) ((uint64_t)(tid) << 32 | (uint32_t)(id))

typedef struct ebpfMonPutAuthors ebpfMonPutAuthors;

ebpfMonPutAuthors *ebpfMonPutAuthorsNew(void); /* NULL without memory */
void ebpfMonPutAuthorsFree(ebpfMonPutAuthors *authors);

/* The put of a client is finished. "other": the client, if it is another one than the thread seemed to serve; NULL: it
 * is that one. */
void ebpfMonPutAuthorsAdd(ebpfMonPutAuthors *authors, uint32_t iocId, uint64_t number, const ebpfMonPut *put,
                          const ebpfMonPutClient *other);

/* Sets the client of a put that put "number" caused, if that is certain. It stays as it is if that put is forgotten:
 * some hundred are known. */
void ebpfMonPutAuthorsSet(const ebpfMonPutAuthors *authors, uint32_t iocId, uint64_t number, ebpfMonPut *put);

#endif
