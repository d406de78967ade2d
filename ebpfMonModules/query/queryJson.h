/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a JSON text into a tree, with Base's yajl; // comments are allowed. Each value keeps its place in the text,
 * because a later check must tell where a mistake is. Bytes, values and depth have limits. No shared state.
 */
#ifndef EBPFMON_QUERYJSON_H
#define EBPFMON_QUERYJSON_H

#include <stddef.h>
#include <stdint.h>

#define EBPFMON_QUERYJSON_VALUES_MAX 20000
#define EBPFMON_QUERYJSON_DEPTH_MAX  16

typedef enum { ebpfMonQueryJsonNull, ebpfMonQueryJsonBool, ebpfMonQueryJsonNumber, ebpfMonQueryJsonText,
               ebpfMonQueryJsonList, ebpfMonQueryJsonMap } ebpfMonQueryJsonKind;

typedef struct ebpfMonQueryJsonValue {
    ebpfMonQueryJsonKind kind;
    size_t      at;            /* offset in the text where it begins */
    const char *key;           /* its key, if it is in a map; else NULL */
    size_t      keyAt;         /* offset of the key */
    const char *text;          /* the text; it ends at the first NUL */
    size_t      length;        /* all bytes of the text, also those after a NUL */
    double      number;        /* the number; 1 for true, 0 for false */
    int64_t     integer;       /* the number, if isInteger */
    int         isInteger;
    struct ebpfMonQueryJsonValue *first; /* the first element of a list or map */
    struct ebpfMonQueryJsonValue *next;  /* the next element of the list or map that this value is in */
    unsigned    count;         /* elements of a list or map */
} ebpfMonQueryJsonValue;

typedef struct ebpfMonQueryJson ebpfMonQueryJson;

/* Returns the tree. NULL: "why" says what is wrong, and *at is its offset in the text. */
ebpfMonQueryJson *ebpfMonQueryJsonRead(const char *text, size_t length, char *why, size_t size, size_t *at);
void ebpfMonQueryJsonFree(ebpfMonQueryJson *json); /* NULL does no harm */

/* The value that is the whole text. */
const ebpfMonQueryJsonValue *ebpfMonQueryJsonGetTop(const ebpfMonQueryJson *json);

/* The value of a key; NULL: the map does not have the key, or "map" is not a map. */
const ebpfMonQueryJsonValue *ebpfMonQueryJsonFind(const ebpfMonQueryJsonValue *map, const char *key);

#endif
