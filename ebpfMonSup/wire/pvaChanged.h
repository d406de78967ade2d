/* SPDX-License-Identifier: BSD-3-Clause */
/* A value of which only what changed is sent, with a BitSet that says what that is. */
#ifndef EBPFMON_PVACHANGED_H
#define EBPFMON_PVACHANGED_H

#include "wire/pvaValue.h"

/* Values of the fields whose bits are set: one leaf "value" as it is, else {"a": 1}. */
void ebpfMonPvaChanged(pvaValue *value, const pvaType *type, const pvaBits *bits);

#endif
