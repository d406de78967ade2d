/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One JSON object in one line, by Base's yajl. Texts that are not valid UTF-8 get U+FFFD for each byte that does not
 * belong, so that every line can be parsed (RFC 8259, 8.1).
 */
#ifndef EBPFMON_JSONGEN_H
#define EBPFMON_JSONGEN_H

#include <stddef.h>
#include <yajl_gen.h>

typedef struct {
    yajl_gen g;
    char  *buf;
    size_t size, len;
    int    cut;    /* it did not fit */
} ebpfMonJson;

/* One object is begun in buf. One at a time in each thread: its generator is used again and again. */
void ebpfMonJsonBegin(ebpfMonJson *j, char *buf, size_t size);

/* Before a thread ends that began one. */
void ebpfMonJsonForget(void);

/* Length without a terminator, 0 when it did not fit or there is no memory. */
size_t ebpfMonJsonEnd(ebpfMonJson *j);

void ebpfMonJsonKey(ebpfMonJson *j, const char *key);
void ebpfMonJsonText(ebpfMonJson *j, const char *text);
void ebpfMonJsonInteger(ebpfMonJson *j, long long number);

/* The text itself where it is a JSON number, so that no digit is lost, else the shortest that reads back as the
 * number. What is not finite is a string: "Nan", "Infinity", "-Infinity", as caPutLog has it. */
void ebpfMonJsonNumber(ebpfMonJson *j, const char *text, double number);

/* Key and value; nothing when the text is empty. */
void ebpfMonJsonPair(ebpfMonJson *j, const char *key, const char *text);

/* Valid UTF-8 of src in dst; what does not fit is left out. Length. */
size_t ebpfMonUtf8(char *dst, size_t size, const char *src);

/* Nonzero when the len characters are a number as RFC 8259 has it. */
int ebpfMonIsJsonNumber(const char *text, size_t len);

/* The shortest text that reads back as this number. */
void ebpfMonShortest(double number, char *buf, size_t size);

#endif
