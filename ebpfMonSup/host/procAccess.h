/* SPDX-License-Identifier: BSD-3-Clause */
/* Which parts of other processes this process may read: found out by trying. */
#ifndef EBPFMON_PROCACCESS_H
#define EBPFMON_PROCACCESS_H

typedef struct {
    unsigned looked;   /* processes that were tried: those with a program that answered in time */
    unsigned memory;   /* of those, whose memory may be read */
    unsigned programs; /* … whose program file */
    unsigned names;    /* … whose environment, where the name of an IOC stands */
    unsigned elsewhere; /* … that live in another network namespace */
} ebpfMonProcAccess;

/* Tries all processes, a thousand and two seconds at most. */
void ebpfMonProcAccessTry(ebpfMonProcAccess *access);

#endif
