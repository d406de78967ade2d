/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/pvaType.h"

/* --- descriptions --- */

#define PVA_NODES   4096 /* fields of a type, at most */
#define PVA_CACHED  1024 /* types with a number, in one direction */
#define PVA_TYPE_BYTES (1024 * 1024) /* bytes of all types of a connection */

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

/* Makes a type with room for so many nodes and bytes of names, which the caller sets. NULL: no memory. */
static pvaType *newPvaType(pvaTypes *types, unsigned count, size_t nameBytes)
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

/* The type of a number. NULL: not known. */
static pvaType *findPvaTypes(pvaTypes *types, uint16_t id)
{
    pvaCached *cached = *findTypePlace(types, id);

    return cached ? cached->type : NULL;
}

/* Sets the type of a number. NULL: the number has a new meaning that we do not know. */
static void setPvaTypes(pvaTypes *types, uint16_t id, pvaType *type)
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

/* --- reading --- */

/* A type that is being read. */
typedef struct {
    pvaTypes *types;
    pvaBuf   *buf;
    pvaNode  *node;
    unsigned  count, room;
    char     *names;
    size_t    nameBytes, nameRoom;
    int       noMemory;
} reading;

/* Makes room for "more" elements of size "each" after the "used" ones of "*room", at most "limit". 0 or -1. */
static int growArray(reading *r, void **array, size_t used, size_t *room, size_t more, size_t limit, size_t each)
{
    size_t want = *room ? *room : 32;

    if (more <= *room - used) {
        return 0;
    }
    if (used + more > limit) {
        r->noMemory = 1;
        return -1;
    }
    while (want < used + more) {
        want *= 2;
    }
    void *wider = ebpfMonCircuitAlloc(r->types->circuit, want * each);
    if (!wider) {
        r->noMemory = 1;
        return -1;
    }
    if (*array) {
        memcpy(wider, *array, used * each);
        ebpfMonCircuitFree(r->types->circuit, *array, *room * each);
    }
    *array = wider;
    *room = want;
    return 0;
}

static pvaNode *addNodes(reading *r, unsigned more)
{
    size_t room = r->room;
    void *array = r->node;
    int failed = growArray(r, &array, r->count, &room, more, PVA_NODES, sizeof(pvaNode));

    r->node = array;
    r->room = room;
    if (failed) {
        return NULL;
    }
    r->count += more;
    return &r->node[r->count - more];
}

static int addName(reading *r, const char *name, size_t length, uint32_t *where)
{
    void *array = r->names;
    int failed = growArray(r, &array, r->nameBytes, &r->nameRoom, length + 1, 65536, 1);

    r->names = array;
    if (failed) {
        return -1;
    }
    memcpy(r->names + r->nameBytes, name, length);
    r->names[r->nameBytes + length] = 0;
    *where = r->nameBytes;
    r->nameBytes += length + 1;
    return 0;
}

/* Finds the first bit with a field that is not known for certain. */
static unsigned countSureBits(const pvaType *type)
{
    unsigned node = 0, bit = 0, i;

    while (node < type->count) {
        unsigned isStruct = type->node[node].code == pvaStruct && !type->node[node].array;

        for (i = node; !isStruct && i < type->node[node].next; i++) {
            if (type->node[i].code == pvaUnknown) {
                return bit;
            }
        }
        node = isStruct ? node + 1 : type->node[node].next;
        bit++;
    }
    return bit;
}

static unsigned findDepth(const pvaType *type)
{
    unsigned end[PVA_DEPTH]; /* the node after each type around this one */
    unsigned around = 0, most = 0, i;

    for (i = 0; i < type->count; i++) {
        while (around && i == end[around - 1]) {
            around--;
        }
        if (around > most) {
            most = around;
        }
        if (type->node[i].next > i + 1) {
            end[around++] = type->node[i].next;
        }
    }
    return most;
}

/* Makes a type from the nodes that were read since node "from". */
static pvaType *makeType(reading *r, unsigned from)
{
    unsigned count = r->count - from, i;
    size_t names, first = 0;

    /* names are in the order of the nodes; the root's own name is not needed */
    for (i = from + 1; i < r->count; i++) {
        if (r->node[i].name) {
            first = r->node[i].name;
            break;
        }
    }
    names = first ? r->nameBytes - first + 1 : 1;
    pvaType *type = newPvaType(r->types, count, names);
    if (!type) {
        r->noMemory = 1;
        return NULL;
    }
    for (i = 0; i < count; i++) {
        type->node[i] = r->node[from + i];
        type->node[i].next -= from;
        type->node[i].name = i && type->node[i].name ? type->node[i].name - first + 1 : 0;
        type->unknown |= type->node[i].code == pvaUnknown;
        type->variant |= type->node[i].code == pvaVariant;
    }
    type->sure = countSureBits(type);
    type->depth = findDepth(type);
    char *to = (char *)&type->node[count];
    *to = 0;
    if (first) {
        memcpy(to + 1, r->names + first, r->nameBytes - first);
    }
    return type;
}

/* Copies a type that is known by its number into the type that is being read. It must not be nested deeper than a type
 * that a message describes whole: who writes a value goes through all fields in it at each level. */
static int copyType(reading *r, const pvaType *type, unsigned depth, uint32_t name)
{
    unsigned at = r->count, i;

    if (depth + type->depth > PVA_DEPTH) {
        r->buf->bad = 1;
        return -1;
    }
    pvaNode *node = addNodes(r, type->count);
    if (!node) {
        return -1;
    }
    for (i = 0; i < type->count; i++) {
        node[i] = type->node[i];
        node[i].next += at;
        node[i].name = name;
        if (i && addName(r, pvaName(type, i), strlen(pvaName(type, i)), &node[i].name)) {
            return -1;
        }
    }
    return 0;
}

static int readField(reading *r, unsigned depth, uint32_t name);

static int readMembers(reading *r, unsigned at, unsigned depth)
{
    size_t length, children, i;
    const char *id = pvaString(r->buf, &length);
    int isStruct = r->node[at].code == pvaStruct;
    unsigned bits = 1;

    if (id && isStruct && length == 6 && !memcmp(id, "enum_t", 6)) {
        r->node[at].isEnum = 1;
    }
    children = pvaSize(r->buf);
    if (pvaFailed(r->buf)) {
        return -1;
    }
    if (children > pvaLeft(r->buf) / 2) { /* a child has two bytes at least: length of its name, and type */
        r->buf->bad = 1;
        return -1;
    }
    if (children > PVA_NODES) {
        r->noMemory = 1;
        return -1;
    }
    r->node[at].children = children;
    for (i = 0; i < children; i++) {
        unsigned child = r->count;
        uint32_t name;
        const char *text = pvaString(r->buf, &length);

        if (!text || addName(r, text, strnlen(text, length), &name) || readField(r, depth + 1, name)) {
            return -1;
        }
        bits += r->node[child].bits;
        if (r->node[at].isEnum && (i > 1 || strcmp(r->names + name, i ? "choices" : "index")
            || r->node[child].code != (i ? pvaText : pvaI32) || r->node[child].array != (i ? pvaArray : pvaScalar))) {
            r->node[at].isEnum = 0;
        }
    }
    r->node[at].isEnum &= children > 0;
    r->node[at].bits = isStruct ? bits : 1;
    return 0;
}

static int readField(reading *r, unsigned depth, uint32_t name);

/* Reads a type with a number: the number alone, or with its description. */
static int readNumbered(reading *r, unsigned code, unsigned depth, uint32_t name)
{
    unsigned at = r->count;
    uint16_t id = pvaGet(r->buf, 2);

    if (code == 0xfe) {
        const pvaType *known = findPvaTypes(r->types, id);

        if (known) {
            return copyType(r, known, depth, name);
        }
        pvaNode *node = addNodes(r, 1);
        if (!node || pvaFailed(r->buf)) {
            return -1;
        }
        *node = (pvaNode){ .code = pvaUnknown, .next = at + 1, .bits = 1, .name = name };
        return 0;
    }
    if (code == 0xfc) {
        pvaSkip(r->buf, 4); /* the tag, which is not used */
    }
    /* even if this fails, the number does not have its old meaning any more */
    r->types->redefines |= findPvaTypes(r->types, id) != NULL;
    setPvaTypes(r->types, id, NULL);
    if (readField(r, depth + 1, name)) {
        return -1;
    }
    pvaType *type = makeType(r, at);
    setPvaTypes(r->types, id, type);
    ebpfMonPvaTypeDrop(r->types, type);
    return type ? 0 : -1;
}

/* Reads what the structure or union of node "at" is made of: its members, or the type of its elements. */
static int readParts(reading *r, unsigned at, unsigned depth)
{
    unsigned element = r->count;

    if (r->node[at].array == pvaScalar) {
        if (readMembers(r, at, depth)) {
            return -1;
        }
    } else {
        r->node[at].children = 1;
        if (r->node[at].array != pvaArray || readField(r, depth + 1, 0)
            || (r->node[element].code != r->node[at].code && r->node[element].code != pvaUnknown)
            || r->node[element].array) {
            r->buf->bad |= !r->noMemory && !r->buf->cut;
            return -1;
        }
    }
    r->node[at].next = r->count;
    return 0;
}

/* Reads a field. 0: one more node, or a subtree, is in the list. */
static int readField(reading *r, unsigned depth, uint32_t name)
{
    unsigned at = r->count, code = pvaGet(r->buf, 1);

    if (depth > PVA_DEPTH || (code >= 0xe0 && code < 0xfc) || code == 0xff) {
        r->buf->bad = 1;
    }
    if (pvaFailed(r->buf)) {
        return -1;
    }
    if (code >= 0xfc) {
        return readNumbered(r, code, depth, name);
    }
    pvaNode *node = addNodes(r, 1);
    if (!node) {
        return -1;
    }
    *node = (pvaNode){ .code = code & ~0x18u, .array = code >> 3 & 3, .next = at + 1, .bits = 1, .name = name };
    switch (node->code) {
    case pvaStruct:
    case pvaUnion:
        return readParts(r, at, depth);
    case pvaVariant:
        r->buf->bad |= node->array > pvaArray;
        break;
    case 0x83: /* a bounded string: 0x83 in pvData, 0x86 in the table of the specification */
    case 0x86:
        r->buf->bad |= node->array != pvaScalar;
        node->code = pvaText;
        pvaSize(r->buf);
        break;
    case pvaBool: case pvaI8: case pvaI16: case pvaI32: case pvaI64: case pvaU8: case pvaU16: case pvaU32:
    case pvaU64: case pvaF32: case pvaF64: case pvaText:
        if (node->array >= pvaBounded) {
            size_t size = pvaSize(r->buf);

            r->buf->bad |= size > INT32_MAX;
            node->size = size;
        }
        break;
    default:
        r->buf->bad = 1;
    }
    return pvaFailed(r->buf) ? -1 : 0;
}

pvaType *ebpfMonPvaTypeRead(pvaTypes *types, pvaBuf *buf)
{
    reading r = { .types = types, .buf = buf };
    pvaType *type = NULL;
    uint32_t none;
    size_t at = buf->pos;
    unsigned code = pvaGet(buf, 1);

    if (pvaFailed(buf) || code == 0xff) {
        return NULL;
    }
    uint16_t id = code >= 0xfc ? pvaGet(buf, 2) : 0;
    if (pvaFailed(buf)) {
        return NULL;
    }
    if (code == 0xfe && findPvaTypes(types, id)) {
        return ebpfMonPvaTypeKeep(findPvaTypes(types, id));
    }
    buf->pos = at;
    /* name 0 is the empty name */
    if (!addName(&r, "", 0, &none) && !readField(&r, 0, 0)) {
        pvaType *numbered = code == 0xfc || code == 0xfd ? findPvaTypes(types, id) : NULL;

        type = numbered ? ebpfMonPvaTypeKeep(numbered) : makeType(&r, 0);
    }
    if (r.node) {
        ebpfMonCircuitFree(types->circuit, r.node, r.room * sizeof(pvaNode));
    }
    if (r.names) {
        ebpfMonCircuitFree(types->circuit, r.names, r.nameRoom);
    }
    if (r.noMemory) {
        /* we know neither where the description ends, nor which numbers its rest contains */
        ebpfMonCircuitStats(types->circuit)->noMemory++;
        buf->cut = 1;
    }
    if (pvaFailed(buf)) {
        ebpfMonPvaTypesForget(types);
    }
    return type;
}
