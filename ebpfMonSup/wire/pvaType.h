/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Type descriptions of pvAccess ("FieldDesc") as one list of nodes, depth first; and the two registries of a
 * connection. A peer may send a number in place of a description that it sent before. (pvAccess Protocol Specification,
 * Introspection Data; introspectionRegistry.cpp of pvAccessCPP.)
 */
#ifndef EBPFMON_PVATYPE_H
#define EBPFMON_PVATYPE_H

#include "wire/protocol.h"
#include "wire/pvaBuf.h"

#define PVA_DEPTH   16   /* nested types */

/* Codes as they are sent, without the bits of arrays. */
enum {
    pvaBool = 0x00, pvaI8 = 0x20, pvaI16, pvaI32, pvaI64, pvaU8, pvaU16, pvaU32, pvaU64, pvaF32 = 0x42, pvaF64,
    pvaText = 0x60, pvaStruct = 0x80, pvaUnion, pvaVariant,
    pvaUnknown = 0xfe /* a number with a description that we missed */
};
enum { pvaScalar, pvaArray, pvaBounded, pvaFixed }; /* bits 3 and 4 of a code */

typedef struct {
    uint8_t  code;
    uint8_t  array;
    uint8_t  isEnum;   /* nonzero: the structure enum_t, with index and choices */
    uint16_t children; /* of a structure or union; an array of them has one child, its element */
    uint16_t next;     /* the node after this one and all below it */
    uint16_t bits;     /* bits that it takes in a BitSet */
    uint32_t name;     /* offset of its name in the names */
    uint32_t size;     /* elements of a pvaFixed */
} pvaNode;

typedef struct {
    unsigned refs;
    unsigned count;    /* number of nodes */
    unsigned depth;    /* types around its innermost ones; 0: there is nothing in it */
    size_t   nameBytes;
    int      unknown;  /* nonzero: a part of it is pvaUnknown */
    unsigned sure;     /* the first bit with a field that is not known; else the number of bits */
    int      variant;  /* nonzero: a part of it is pvaVariant: its values contain descriptions */
    pvaNode  node[];   /* the names follow, each ends with a zero */
} pvaType;

typedef struct pvaCached pvaCached;

typedef struct {
    ebpfMonCircuit *circuit;
    size_t     *bytes;        /* bytes of all types of this connection */
    pvaCached  *cached[64];
    unsigned    count;
    int         redefines;    /* nonzero: the peer has described the type of a number again */
} pvaTypes;

static inline const char *pvaName(const pvaType *type, unsigned node)
{
    return (const char *)&type->node[type->count] + type->node[node].name;
}

void ebpfMonPvaTypesInit(pvaTypes *types, ebpfMonCircuit *circuit, size_t *bytes);
/* Forgets all numbers, because a description may have been missed. */
void ebpfMonPvaTypesForget(pvaTypes *types);
/* Keep: adds a reference. Drop: removes one, and frees the type with its last one. */
pvaType *ebpfMonPvaTypeKeep(pvaType *type);
void ebpfMonPvaTypeDrop(pvaTypes *types, pvaType *type); /* NULL does no harm */

/* --- reading ---
 *
 * Reads type descriptions in messages.
 */

/* Reads the next description of a message, and remembers the numbers in it. The caller gets a reference
 * (ebpfMonPvaTypeDrop). NULL: it is null, there is no memory, or "buf" has failed. */
pvaType *ebpfMonPvaTypeRead(pvaTypes *types, pvaBuf *buf);

#endif
