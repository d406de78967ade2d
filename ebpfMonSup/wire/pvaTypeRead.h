/* SPDX-License-Identifier: BSD-3-Clause */
/* Type descriptions as they stand in messages. */
#ifndef EBPFMON_PVATYPEREAD_H
#define EBPFMON_PVATYPEREAD_H

#include "wire/pvaType.h"

/* The next description of a message, with a reference for the caller; what it numbers is remembered. NULL: null, no
 * memory, or buf has failed. */
pvaType *ebpfMonPvaTypeRead(pvaTypes *types, pvaBuf *buf);

#endif
