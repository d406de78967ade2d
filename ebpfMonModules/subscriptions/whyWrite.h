/* SPDX-License-Identifier: BSD-3-Clause */
/* What became of the last write to a PV, for the answer of why.h: refused, changed, overwritten, or still at work. */
#ifndef EBPFMON_WHYWRITE_H
#define EBPFMON_WHYWRITE_H

#include "model/put.h"
#include "subscriptions/whyPlace.h"

typedef enum {
    ebpfMonWriteNotSeen,    /* no put to it is among those that are kept */
    ebpfMonWriteHolds,      /* it was made, and the field has its value */
    ebpfMonWriteUnknown,    /* what became of it is not known */
    ebpfMonWriteAtWork,     /* its put-callback waits */
    ebpfMonWriteStops       /* refused, changed or overwritten */
} ebpfMonWriteFate;

typedef struct {
    ebpfMonWriteFate fate;
    double age;             /* s: since it was made, if one was seen */
    char text[760];
} ebpfMonWriteStory;

/* "field": "VAL", …; "client": as ebpfMonFlowIsNamed, or a part of what the put says of its writer; "": anybody. */
void ebpfMonWhyWrite(const ebpfMonWhyPlace *at, const char *field, const char *client, ebpfMonWriteStory *story);

/* A put that was made. */
typedef struct {
    epicsTimeStamp time;
    char text[240];         /* "1 of 2026-11-21 07:28:03 by root@host" */
} ebpfMonFoundPut;

/* The newest put to a field that is kept, by anybody. 0, or -1: there is none. */
int ebpfMonWhyFindPut(const char *ioc, const char *record, const char *field, ebpfMonFoundPut *put);

#endif
