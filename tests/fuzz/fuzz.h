/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fuzzers that need EPICS share (entry.c). */
#ifndef EBPFMON_FUZZ_H
#define EBPFMON_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each fuzzer has this function. It gives one input to a parser. */
void ebpfMonFuzzOne(const uint8_t *data, size_t size);

/* The CPU time (s) that one input may take with sanitizers; more is an error. A fuzzer may define its own limit. */
extern double ebpfMonFuzzSeconds;

/* Fails if the condition is false. */
#define FUZZ_CHECK(what) do { \
        if (!(what)) { \
            fprintf(stderr, "ERROR: %s:%d: %s does not hold\n", __FILE__, __LINE__, #what); \
            abort(); \
        } \
    } while (0)

/* Takes the next piece from an input that is a list of pieces: one byte of kind, two bytes of length (big-endian), and
 * as many bytes. Returns 0 at the end. */
static inline int fuzzNextPiece(const uint8_t **data, size_t *size, unsigned *kind, const uint8_t **piece,
                                size_t *length)
{
    if (*size < 3)
        return 0;
    *kind = (*data)[0];
    *length = (size_t)((*data)[1] << 8 | (*data)[2]);
    if (*length > *size - 3)
        *length = *size - 3;
    *piece = *data + 3;
    *data += 3 + *length;
    *size -= 3 + *length;
    return 1;
}

/* Returns a copy of a piece as a text, which the caller frees. It has its exact size, so the sanitizer sees each read
 * behind its end. */
static inline char *fuzzCopyText(const uint8_t *piece, size_t length)
{
    char *text = malloc(length + 1);

    if (!text)
        abort();
    memcpy(text, piece, length);
    text[length] = 0;
    return text;
}

#endif
