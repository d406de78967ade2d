/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads type descriptions in messages. */
#ifndef EBPFMON_PVATYPEREAD_H
#define EBPFMON_PVATYPEREAD_H

#include "wire/pvaType.h"

/* Reads the next description of a message, and remembers the numbers in it. The caller gets a reference
 * (ebpfMonPvaTypeDrop). NULL: it is null, there is no memory, or "buf" has failed. */
pvaType *ebpfMonPvaTypeRead(pvaTypes *types, pvaBuf *buf);

#endif
