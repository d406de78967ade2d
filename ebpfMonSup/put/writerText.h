/* SPDX-License-Identifier: BSD-3-Clause */
/* The texts that say who made a put and by which way, made of the members of ebpfMonPut. No state; any thread. */
#ifndef EBPFMON_WRITERTEXT_H
#define EBPFMON_WRITERTEXT_H

#include <stddef.h>
#include "model/put.h"

/* Stands before a client who is not certain (isUnsure of ebpfMonPut): what is cut of a long text is its end. */
#define EBPFMON_PERHAPS "perhaps "

#define EBPFMON_PUT_BY "put by "

/* "put by U@H": a client's put as the cause of what it starts. */
void ebpfMonWriterTextFormatCause(const char *user, const char *host, int isUnsure, char *buf, size_t size);

/* Sets put->who and put->origin from the other members. */
void ebpfMonWriterTextComplete(ebpfMonPut *put);

#endif
