/* SPDX-License-Identifier: BSD-3-Clause */
/* A value with only the fields that changed, and a BitSet that tells which. */
#ifndef EBPFMON_PVACHANGED_H
#define EBPFMON_PVACHANGED_H

#include "wire/pvaValue.h"

/* Reads the values of the fields with set bits. If the only one is "value", its text is as it is; else it is like {"a":
 * 1}. */
void ebpfMonPvaChanged(pvaValue *value, const pvaType *type, const pvaBits *bits);

#endif
