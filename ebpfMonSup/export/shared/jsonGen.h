/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes a JSON object in one line, by yajl of Base. Texts are cleaned (ebpfMonTextCopy), so every line can be parsed
 * (RFC 8259, 8.1).
 *
 * One thread. An ebpfMonJson writes one object after the other, because to make a generator costs more than a short
 * line. If something does not fit, or memory is missing, ebpfMonJsonEnd returns 0.
 */
#ifndef EBPFMON_JSONGEN_H
#define EBPFMON_JSONGEN_H

#include <stddef.h>
#include <stdint.h>
#include <yajl_gen.h>

/* Set it to 0 before the first use. It must not move afterwards, because the generator knows its address. */
typedef struct ebpfMonJson {
    yajl_gen g;    /* NULL: there is none yet */
    char  *buf;    /* stays the caller's, who must keep it from Begin to End */
    size_t size, len;
    int    cut;    /* nonzero: something did not fit */
} ebpfMonJson;

/* Begins an object in "buf", and opens it. 0; or -1: no memory, and nothing may be written. */
int ebpfMonJsonBegin(ebpfMonJson *json, char *buf, size_t size);

/* Closes the object. Returns its length, without a terminator; 0: it did not fit. */
size_t ebpfMonJsonEnd(ebpfMonJson *json);

/* Returns the length of an object that the caller closes later; 0: it did not fit. */
size_t ebpfMonJsonEndOpen(const ebpfMonJson *json);

/* Frees the generator; afterwards it is as new. */
void ebpfMonJsonFree(ebpfMonJson *json);

/* Write a key; or a value, in a list or after a key. */
void ebpfMonJsonWriteKey(ebpfMonJson *json, const char *key);
void ebpfMonJsonWriteText(ebpfMonJson *json, const char *text);
void ebpfMonJsonWriteInteger(ebpfMonJson *json, long long number);
/* Writes a number. If "digits" is a number of JSON, it is written, so that no digit is lost. Otherwise (also NULL) the
 * shortest text is written that reads back as the number. NaN and infinities are the texts "Nan", "Infinity",
 * "-Infinity", as in caPutLog. */
void ebpfMonJsonWriteNumber(ebpfMonJson *json, const char *digits, double number);

/* Add a key and its value. */
void ebpfMonJsonAddText(ebpfMonJson *json, const char *key, const char *text);
/* The text is clean already, or ebpfMonTextCopySpaces made it: its tabs and ends of lines stay. */
void ebpfMonJsonAddCleanText(ebpfMonJson *json, const char *key, const char *text);
void ebpfMonJsonAddTextIfAny(ebpfMonJson *json, const char *key, const char *text); /* adds nothing if it is empty */
void ebpfMonJsonAddInteger(ebpfMonJson *json, const char *key, long long number);
void ebpfMonJsonAddNumber(ebpfMonJson *json, const char *key, const char *digits, double number);
void ebpfMonJsonAddBool(ebpfMonJson *json, const char *key, int value);
/* An id of OpenTelemetry, up to 16 bytes, as hexadecimal digits; adds nothing if all are 0. */
void ebpfMonJsonAddId(ebpfMonJson *json, const char *key, const uint8_t *id, unsigned size);

/* "key" NULL: an element of a list. */
void ebpfMonJsonOpenObject(ebpfMonJson *json, const char *key);
void ebpfMonJsonCloseObject(ebpfMonJson *json);
void ebpfMonJsonOpenList(ebpfMonJson *json, const char *key);
void ebpfMonJsonCloseList(ebpfMonJson *json);

/* Nonzero: the "len" characters are a number of RFC 8259. */
int ebpfMonJsonIsNumber(const char *text, size_t len);

/* Writes the shortest text that reads back as this number. */
void ebpfMonJsonFormatNumber(double number, char *buf, size_t size);

/* Writes "size" bytes as 2 * size hexadecimal digits and a NUL. */
void ebpfMonJsonFormatId(const uint8_t *id, unsigned size, char *digits);

#endif
