/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "Why is this PV not what I see?" Follows a value in the order in which it travels: IOC, record, post, queue, send
 * buffer, network, client. Each step is fine, or it stops here (with the figure), or it is not known. What only waits
 * because a later step stops is "held up". It says what was read, and guesses nothing.
 */
#ifndef EBPFMON_WHY_H
#define EBPFMON_WHY_H

#include "subscriptions/subscriptions.h"

/* The answer in lines: the first one is the first step that stops. "pv": RECORD or RECORD.FIELD; "client": as
 * ebpfMonFlowIsNamed, NULL or "": the one that is worst off. Reads the IOC, and takes up to some seconds. Any thread
 * without a lock. */
void ebpfMonWhyAnswer(ebpfMonSubscriptions *subs, const char *pv, const char *client, char *text, size_t size);

#endif
