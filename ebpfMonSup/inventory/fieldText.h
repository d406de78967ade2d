/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a field of a record as text, in the form of a database file: numbers, strings, choices of menus, links. No
 * state; any thread, without a lock. */
#ifndef EBPFMON_FIELDTEXT_H
#define EBPFMON_FIELDTEXT_H

#include "ioc/catalogue.h"

#define EBPFMON_FIELD_TEXT 1024 /* bytes of a text; a longer one ends in "..." */

/* "precord": the record's address in the IOC. 0: "text" is set, and clean (common/text.h). -1: the field cannot be
 * read, or its type has no text. */
int ebpfMonFieldTextRead(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint64_t precord, const ebpfMonField *field,
                         char *text, size_t size);

#endif
