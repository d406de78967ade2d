/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A JSON text as a tree. Each value has its place in the text, so that a later check can say where a mistake is. Bounded in
 * bytes, values and depth. Parsed by Base's yajl; // comments are allowed. One thread at a time.
 */
#ifndef EBPFMON_QUERYJSON_H
#define EBPFMON_QUERYJSON_H

#include <stddef.h>
#include <stdint.h>

#define EBPFMON_QUERYJSON_VALUES_MAX 20000
#define EBPFMON_QUERYJSON_DEPTH_MAX  16

typedef enum { ebpfMonQueryJsonNull, ebpfMonQueryJsonBool, ebpfMonQueryJsonNumber, ebpfMonQueryJsonText,
               ebpfMonQueryJsonList,
               ebpfMonQueryJsonMap } ebpfMonQueryJsonKind;

typedef struct ebpfMonQueryJsonValue {
    ebpfMonQueryJsonKind kind;
    size_t      at;            /* where it begins in the text */
    const char *key;           /* in a map; else NULL */
    size_t      keyAt;
    const char *text;          /* of a text; a NUL within ends it */
    size_t      length;        /* of "text" with all its bytes, also behind a NUL */
    double      number;        /* of a number; 1 and 0 for true and false */
    int64_t     integer;       /* of a number that is one */
    int         isInteger;
    struct ebpfMonQueryJsonValue *first, *next; /* of a list or a map; in it */
    unsigned    count;
} ebpfMonQueryJsonValue;

typedef struct ebpfMonQueryJson ebpfMonQueryJson;

/* The tree. NULL: "why" says what is wrong and *at where. */
ebpfMonQueryJson *ebpfMonQueryJsonRead(const char *text, size_t length, char *why, size_t size, size_t *at);
void ebpfMonQueryJsonFree(ebpfMonQueryJson *json); /* NULL does no harm */

const ebpfMonQueryJsonValue *ebpfMonQueryJsonGetTop(const ebpfMonQueryJson *json);

/* The value of a key of a map; NULL: there is none. */
const ebpfMonQueryJsonValue *ebpfMonQueryJsonFind(const ebpfMonQueryJsonValue *map, const char *key);

#endif
