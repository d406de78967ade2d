/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that the files of the parser of queries share. Private to this room; one thread. All functions
 * return 0, or -1: the query is refused, and p->why says why. */
#ifndef EBPFMON_QUERYPARSER_H
#define EBPFMON_QUERYPARSER_H

#include <stddef.h>
#include "query/queryJson.h"
#include "query/querySpec.h"

typedef struct {
    char   why[480];
    size_t at;              /* offset in the text of what is wrong */
    ebpfMonQuerySpec *spec; /* the query that is read now */
} ebpfMonQueryParser;

/* Refuses the query: sets the reason and its offset in the text. Returns -1. */
int ebpfMonQueryRefuse(ebpfMonQueryParser *p, size_t at, const char *format, ...)
    __attribute__((format(__printf__, 3, 4)));

/* "value" must be a map that has only keys of "known" (for example "name, title"). "what": its name for the message
 * (for example "a query"). */
int ebpfMonQueryCheckKeys(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *value, const char *what,
                          const char *known);

/* Read the value of a key into *to. If the map does not have the key, *to does not change. */
int ebpfMonQueryReadNumber(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *map, const char *key, double min,
                           double max, double *to);
int ebpfMonQueryReadWhole(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *map, const char *key, int64_t min,
                          int64_t max, int64_t *to);
int ebpfMonQueryReadText(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *map, const char *key, char *to,
                         size_t size);
int ebpfMonQueryReadBool(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *map, const char *key, int *to);

/* Sets *number to the index of the word in "words", which end with NULL. "what": the name of the value for the
 * message. */
int ebpfMonQueryReadWord(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *value, const char *what,
                         const char *const *words, int *number);

/* Reads a field: what is taken from an event. "name" gets the title of a column with this field; it may be NULL. */
int ebpfMonQueryReadField(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *value, struct ebpfMonQueryField *field,
                          char *name, size_t size);

/* Reads the source. Call this first, while p->spec->order is empty. */
int ebpfMonQueryReadSource(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *source);

/* Reads the conditions. */
int ebpfMonQueryReadWhere(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *where);

/* Reads "thread" of "of", a name or the begin of a name with a "*", and adds it as a condition. */
int ebpfMonQueryReadThread(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *pattern);

/* Puts all conditions into the order that struct ebpfMonQueryTerm needs. */
void ebpfMonQueryOrderTerms(struct ebpfMonQueryPlan *plan);

#endif
