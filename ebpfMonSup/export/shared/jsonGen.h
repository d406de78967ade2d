/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One JSON object in one line, by Base's yajl. Texts pass through ebpfMonTextCopy, so that every line can be
 * parsed (RFC 8259, 8.1).
 *
 * One thread. An ebpfMonJson is used for one object after the other, because making a generator costs more than the
 * rest of a short line. What does not fit, and a lack of memory, show at the end: ebpfMonJsonEnd returns 0.
 */
#ifndef EBPFMON_JSONGEN_H
#define EBPFMON_JSONGEN_H

#include <stddef.h>
#include <yajl_gen.h>

/* Set to 0 before the first use. It must not move afterwards: the generator knows its address. */
typedef struct {
    yajl_gen g;    /* NULL: not made yet */
    char  *buf;    /* the caller's, from Begin to End */
    size_t size, len;
    int    cut;    /* it did not fit */
} ebpfMonJson;

/* Begins an object in buf, and opens it. 0, or -1 without memory: then nothing may be written. */
int ebpfMonJsonBegin(ebpfMonJson *json, char *buf, size_t size);

/* Closes the object. Its length, no terminator; 0: it did not fit. */
size_t ebpfMonJsonEnd(ebpfMonJson *json);

/* The length of an object that the caller closes by himself, later; 0: it did not fit. */
size_t ebpfMonJsonEndOpen(const ebpfMonJson *json);

/* Gives the generator back; after that it is as new. */
void ebpfMonJsonFree(ebpfMonJson *json);

/* A value, in a list or behind a key. */
void ebpfMonJsonWriteKey(ebpfMonJson *json, const char *key);
void ebpfMonJsonWriteText(ebpfMonJson *json, const char *text);
void ebpfMonJsonWriteInteger(ebpfMonJson *json, long long number);
/* "digits" itself where it is a JSON number, so that no digit is lost, else (NULL, too) the shortest text that reads
 * back as the number. What is not finite is a text: "Nan", "Infinity", "-Infinity", as caPutLog has it. */
void ebpfMonJsonWriteNumber(ebpfMonJson *json, const char *digits, double number);

/* Key and value. */
void ebpfMonJsonAddText(ebpfMonJson *json, const char *key, const char *text);
void ebpfMonJsonAddTextIfAny(ebpfMonJson *json, const char *key, const char *text); /* nothing when it is empty */
void ebpfMonJsonAddInteger(ebpfMonJson *json, const char *key, long long number);
void ebpfMonJsonAddNumber(ebpfMonJson *json, const char *key, const char *digits, double number);
void ebpfMonJsonAddBool(ebpfMonJson *json, const char *key, int value);

/* Key NULL: an element of a list. */
void ebpfMonJsonOpenObject(ebpfMonJson *json, const char *key);
void ebpfMonJsonCloseObject(ebpfMonJson *json);
void ebpfMonJsonOpenList(ebpfMonJson *json, const char *key);
void ebpfMonJsonCloseList(ebpfMonJson *json);

/* Nonzero: the len characters are a number as RFC 8259 has it. */
int ebpfMonJsonIsNumber(const char *text, size_t len);

/* The shortest text that reads back as this number. */
void ebpfMonJsonFormatNumber(double number, char *buf, size_t size);

#endif
