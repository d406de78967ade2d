/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a put goes once all is known of it. Any thread. */
#ifndef EBPFMON_PUTPUBLISHER_H
#define EBPFMON_PUTPUBLISHER_H

#include "model/put.h"

/* To the rules, and if it passes the filter to the published and the logs. */
void ebpfMonPutPublisherPublish(ebpfMonPut *put);

#endif
