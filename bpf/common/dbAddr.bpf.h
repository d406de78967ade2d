/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* The DBADDR of a put: which field of which record. */
#ifndef EBPFMON_DBADDR_BPF_H
#define EBPFMON_DBADDR_BPF_H

#include "common/probe.bpf.h"
#include "ebpfMonBase.h"

/* dbAddr.h: DBADDR */
struct addr {
    __u64 precord, pfield, pfldDes;
    __s64 nElements;
    __s16 fieldType, fieldSize, special, dbrType;
};

_Static_assert(sizeof(struct addr) == EBPFMON_DBADDR_SIZE &&
               __builtin_offsetof(struct addr, pfield) == EBPFMON_DbAddr_pfield &&
               __builtin_offsetof(struct addr, pfldDes) == EBPFMON_DbAddr_pfldDes &&
               __builtin_offsetof(struct addr, nElements) == EBPFMON_DbAddr_no_elements &&
               __builtin_offsetof(struct addr, fieldType) == EBPFMON_DbAddr_field_type, "DBADDR");

/* The number in EPICS 7 of a DBF or DBR type of this IOC. */
static __always_inline __s16 convertType(const struct ebpfMonTargetConf *conf, __s16 type)
{
    return type > EBPFMON_DBF_ULONG ? type + conf->dbfGap : type;
}

static __always_inline int readAddr(const struct ebpfMonTargetConf *conf, struct addr *a, __u64 at)
{
    int failed = bpf_probe_read_user(a, sizeof(*a), (void *)at);

    a->fieldType = convertType(conf, a->fieldType);
    return failed;
}

/* Finds the DBADDR that belongs to the pointer at "at". The pointer leads to a dbChannel, or in EPICS 3.14 to the
 * DBADDR itself. */
static __always_inline __u64 findAddr(const struct ebpfMonTargetConf *conf, __u64 at)
{
    return readPtr(at) + conf->chanAddr;
}

/* Finds the DBADDR of a struct channel_in_use. In EPICS 3.14 it is a member of that. */
static __always_inline __u64 findChannelAddr(const struct ebpfMonTargetConf *conf, __u64 pciu)
{
    return conf->chanAddr ? findAddr(conf, pciu + conf->ciuDbch) : pciu + conf->ciuDbch;
}

/* Nonzero: the DISP of the record is set, and this is not a put to DISP itself. */
static __always_inline int isDisabled(const struct ebpfMonTargetConf *conf, const struct addr *a)
{
    __u8 disp = 0;

    if (a->pfield != a->precord + conf->disp)
        bpf_probe_read_user(&disp, sizeof(disp), (void *)(a->precord + conf->disp));
    return disp;
}

static __always_inline int isLinkField(const struct addr *a)
{
    return a->fieldType >= EBPFMON_DBF_INLINK && a->fieldType <= EBPFMON_DBF_FWDLINK;
}

#endif
