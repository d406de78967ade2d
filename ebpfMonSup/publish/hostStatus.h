/* SPDX-License-Identifier: BSD-3-Clause */
/* One light for a whole host, with the worst cause in words. */
#ifndef EBPFMON_HOSTSTATUS_H
#define EBPFMON_HOSTSTATUS_H

#include "model/published.h"

/* Sets published->host from the other values. The caller holds the lock of the published values. */
void ebpfMonHostStatusSet(ebpfMonPublished *published);

#endif
