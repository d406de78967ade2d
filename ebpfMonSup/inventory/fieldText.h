/* SPDX-License-Identifier: BSD-3-Clause */
/* A field of a record as text, as a database file would have it: numbers, strings, choices of menus, links. No state. */
#ifndef EBPFMON_FIELDTEXT_H
#define EBPFMON_FIELDTEXT_H

#include "ioc/catalogue.h"

#define EBPFMON_FIELD_TEXT 1024 /* bytes of a text; a longer one ends in "..." */

/* 0 with a clean text; -1: it cannot be read, or is of no type that has a text. */
int ebpfMonFieldTextRead(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint64_t precord, const ebpfMonField *field,
                         char *text, size_t size);

#endif
