/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes that cause themselves: two who overwrite each other in turn, links through Channel Access in a circle, a
 * client that writes what it has subscribed to. Told from the puts that are seen anyway. Any thread; Tell: only that of
 * subscriptions.c.
 */
#ifndef EBPFMON_FEEDBACK_H
#define EBPFMON_FEEDBACK_H

#include "ebpfMonModule.h"

typedef struct ebpfMonFeedback ebpfMonFeedback;

ebpfMonFeedback *ebpfMonFeedbackNew(void); /* NULL without memory; there is one in a process, never freed */
void ebpfMonFeedbackAddPut(ebpfMonFeedback *feedback, const ebpfMonModulePut *put);

/* Nonzero: the client with this address:port has a subscription to the PV. */
typedef int (*ebpfMonFeedbackIsSubscribed)(void *arg, const char *ioc, const char *pv, const char *peer);

/* Adds a line to IOC_EVENTS for what is new. */
void ebpfMonFeedbackTell(ebpfMonFeedback *feedback, ebpfMonFeedbackIsSubscribed isSubscribed, void *arg);

/* Adds to "text" what is so of this PV now: "; A and B overwrite each other in turn …"; "; links through CA write in a
 * circle …" only if it was told of. */
void ebpfMonFeedbackAddText(ebpfMonFeedback *feedback, const char *ioc, const char *pv, char *text, size_t size);

#endif
