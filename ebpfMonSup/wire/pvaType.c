/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/pvaType.h"

struct pvaCached {
    pvaCached *next;
    uint16_t   id;
    pvaType   *type;
};

static size_t getTypeSize(unsigned count, size_t nameBytes)
{
    return sizeof(pvaType) + count * sizeof(pvaNode) + nameBytes;
}

pvaType *ebpfMonPvaTypeKeep(pvaType *type)
{
    if (type) {
        type->refs++;
    }
    return type;
}

void ebpfMonPvaTypeDrop(pvaTypes *types, pvaType *type)
{
    if (type && !--type->refs) {
        size_t bytes = getTypeSize(type->count, type->nameBytes);

        *types->bytes -= bytes;
        ebpfMonCircuitFree(types->circuit, type, bytes);
    }
}

void ebpfMonPvaTypesInit(pvaTypes *types, ebpfMonCircuit *circuit, size_t *bytes)
{
    memset(types, 0, sizeof(*types));
    types->circuit = circuit;
    types->bytes = bytes;
}

pvaType *ebpfMonPvaTypeNew(pvaTypes *types, unsigned count, size_t nameBytes)
{
    size_t bytes = getTypeSize(count, nameBytes);
    pvaType *type = *types->bytes + bytes <= PVA_TYPE_BYTES ? ebpfMonCircuitAlloc(types->circuit, bytes) : NULL;

    if (type) {
        *types->bytes += bytes;
        *type = (pvaType){ .refs = 1, .count = count, .nameBytes = nameBytes };
    }
    return type;
}

static pvaCached **findTypePlace(pvaTypes *types, uint16_t id)
{
    pvaCached **at = &types->cached[id % 64];

    while (*at && (*at)->id != id) {
        at = &(*at)->next;
    }
    return at;
}

static void forgetType(pvaTypes *types, pvaCached **at)
{
    pvaCached *cached = *at;

    *at = cached->next;
    ebpfMonPvaTypeDrop(types, cached->type);
    ebpfMonCircuitFree(types->circuit, cached, sizeof(*cached));
    types->count--;
}

void ebpfMonPvaTypesForget(pvaTypes *types)
{
    unsigned i;

    for (i = 0; i < 64; i++) {
        while (types->cached[i]) {
            forgetType(types, &types->cached[i]);
        }
    }
}

pvaType *ebpfMonPvaTypesFind(pvaTypes *types, uint16_t id)
{
    pvaCached *cached = *findTypePlace(types, id);

    return cached ? cached->type : NULL;
}

void ebpfMonPvaTypesSet(pvaTypes *types, uint16_t id, pvaType *type)
{
    pvaCached **at = findTypePlace(types, id), *cached = *at;

    if (!type) {
        if (cached) {
            forgetType(types, at);
        }
        return;
    }
    if (!cached) {
        cached = types->count < PVA_CACHED ? ebpfMonCircuitAlloc(types->circuit, sizeof(*cached)) : NULL;
        if (!cached) {
            ebpfMonCircuitStats(types->circuit)->noMemory++;
            return;
        }
        *cached = (pvaCached){ .id = id };
        *at = cached;
        types->count++;
    }
    ebpfMonPvaTypeDrop(types, cached->type);
    cached->type = ebpfMonPvaTypeKeep(type);
}
