/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "put/putAuthors.h"
#include "put/valueText.h"

#define PUTS 512 /* a power of two */

typedef struct {
    uint32_t iocId; /* 0: the place is free */
    uint64_t number;
    int      isUnsure, isOther;
    ebpfMonPutClient client; /* if isOther */
} putAuthor;

struct ebpfMonPutAuthors {
    putAuthor put[PUTS];
};

ebpfMonPutAuthors *ebpfMonPutAuthorsNew(void)
{
    return calloc(1, sizeof(ebpfMonPutAuthors));
}

void ebpfMonPutAuthorsFree(ebpfMonPutAuthors *authors)
{
    free(authors);
}

static size_t findAuthorPlace(uint32_t iocId, uint64_t number)
{
    return (size_t)(number + (number >> 32) * 97 + iocId) % PUTS;
}

void ebpfMonPutAuthorsAdd(ebpfMonPutAuthors *authors, uint32_t iocId, uint64_t number, const ebpfMonPut *put,
                          const ebpfMonPutClient *other)
{
    putAuthor *a = &authors->put[findAuthorPlace(iocId, number)];

    a->iocId = iocId;
    a->number = number;
    a->isUnsure = put->isUnsure;
    a->isOther = other != NULL;
    if (other)
        a->client = *other;
}

void ebpfMonPutAuthorsSet(const ebpfMonPutAuthors *authors, uint32_t iocId, uint64_t number, ebpfMonPut *put)
{
    const putAuthor *a = &authors->put[findAuthorPlace(iocId, number)];

    if (a->iocId != iocId || a->number != number || a->isUnsure)
        return;
    if (a->isOther)
        ebpfMonPutClientSet(&a->client, put);
    put->isUnsure = 0;
    if (strncmp(put->cause, EBPFMON_PUT_BY, sizeof(EBPFMON_PUT_BY) - 1) == 0)
        ebpfMonWriterTextFormatCause(put->user, put->host, 0, put->cause, sizeof(put->cause));
}
