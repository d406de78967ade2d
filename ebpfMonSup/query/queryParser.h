/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the files of the parser of queries share. All of them return 0; -1: the query is refused. */
#ifndef EBPFMON_QUERYPARSER_H
#define EBPFMON_QUERYPARSER_H

#include "query/queryJson.h"
#include "query/querySpec.h"

typedef struct {
    char   why[320];
    size_t at;              /* in the text */
    ebpfMonQuerySpec *spec; /* being made */
} ebpfMonQueryParser;

/* Notes why, and where. Returns -1. */
int ebpfMonQueryRefuse(ebpfMonQueryParser *p, size_t at, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* "value" must be a map with no other keys than these: "name, title". "what": "a query". */
int ebpfMonQueryCheckKeys(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *value, const char *what, const char *known);

/* Read the value of a key into *to; if the key is not there, *to does not change. */
int ebpfMonQueryReadNumber(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *map, const char *key, double min, double max,
                           double *to);
int ebpfMonQueryReadWhole(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *map, const char *key, int64_t min, int64_t max,
                          int64_t *to);
int ebpfMonQueryReadText(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *map, const char *key, char *to, size_t size);
int ebpfMonQueryReadBool(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *map, const char *key, int *to);

/* The number of a word in a list that ends with NULL; "what": "a sort". */
int ebpfMonQueryReadWord(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *value, const char *what,
                         const char *const *words, int *number);

/* Reads a field: what to take from an event. "name" (may be NULL): gets the name of a column with this field. */
int ebpfMonQueryReadField(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *value, struct ebpfMonQueryField *field,
                          char *name, size_t size);

/* The source, when p->spec->order is still empty. */
int ebpfMonQueryReadSource(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *source);

/* The conditions. */
int ebpfMonQueryReadWhere(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *where);

/* "thread" of "of": a name, or its begin and a "*". One more condition. */
int ebpfMonQueryReadThread(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *pattern);

/* Puts all conditions in the order that struct ebpfMonQueryTerm asks for. */
void ebpfMonQueryOrderTerms(struct ebpfMonQueryPlan *plan);

#endif
