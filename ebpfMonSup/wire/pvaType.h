/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pvAccess type descriptions ("FieldDesc") as one flat list of nodes, depth first; and the two registries of a
 * connection that let a peer say a number in place of a description it sent before.
 * (pvAccess Protocol Specification, Introspection Data; introspectionRegistry.cpp of pvAccessCPP.)
 */
#ifndef EBPFMON_PVATYPE_H
#define EBPFMON_PVATYPE_H

#include "wire/protocol.h"
#include "wire/pvaBuf.h"

#define PVA_DEPTH   16   /* types in types */
#define PVA_NODES   4096 /* fields of a type */
#define PVA_CACHED  1024 /* numbered types of one direction */
#define PVA_TYPE_BYTES (1024 * 1024) /* all types of a connection */

/* Codes as on the wire, without the bits that mark arrays. */
enum {
    pvaBool = 0x00, pvaI8 = 0x20, pvaI16, pvaI32, pvaI64, pvaU8, pvaU16, pvaU32, pvaU64, pvaF32 = 0x42, pvaF64,
    pvaText = 0x60, pvaStruct = 0x80, pvaUnion, pvaVariant,
    pvaUnknown = 0xfe /* a number whose description was not seen */
};
enum { pvaScalar, pvaArray, pvaBounded, pvaFixed }; /* bits 3 and 4 */

typedef struct {
    uint8_t  code;
    uint8_t  array;
    uint8_t  isEnum;   /* structure enum_t: index, choices */
    uint16_t children; /* of structure and union; an array of them has one, its element */
    uint16_t next;     /* the node behind this one and all below it */
    uint16_t bits;     /* that it takes in a BitSet */
    uint32_t name;     /* where in the names */
    uint32_t size;     /* pvaFixed */
} pvaNode;

typedef struct {
    unsigned refs;
    unsigned count;    /* of nodes */
    size_t   nameBytes;
    int      unknown;  /* somewhere in it */
    unsigned sure;     /* the first bit whose field is therefore not known; else their number */
    int      variant;  /* somewhere in it: values bring descriptions with them */
    pvaNode  node[];   /* the names come behind them, each ended by a zero */
} pvaType;

typedef struct pvaCached pvaCached;

typedef struct {
    ebpfMonCircuit *circuit;
    size_t     *bytes;        /* of all types of this connection */
    pvaCached  *cached[64];
    unsigned    count;
} pvaTypes;

static inline const char *pvaName(const pvaType *type, unsigned node)
{
    return (const char *)&type->node[type->count] + type->node[node].name;
}

void ebpfMonPvaTypesInit(pvaTypes *types, ebpfMonCircuit *circuit, size_t *bytes);
/* All numbers: a description may have been missed. */
void ebpfMonPvaTypesForget(pvaTypes *types);

/* What a number stands for; NULL: not known. */
pvaType *ebpfMonPvaTypesFind(pvaTypes *types, uint16_t id);
/* NULL: the number now means something we do not have, and no longer what it did. */
void ebpfMonPvaTypesSet(pvaTypes *types, uint16_t id, pvaType *type);

/* For that many nodes and bytes of names, which are to be filled in. NULL: no room. */
pvaType *ebpfMonPvaTypeNew(pvaTypes *types, unsigned count, size_t nameBytes);
pvaType *ebpfMonPvaTypeKeep(pvaType *type);
void ebpfMonPvaTypeDrop(pvaTypes *types, pvaType *type); /* NULL does no harm */

#endif
