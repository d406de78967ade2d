/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/pvaOptions.h"

/* Writes {process: "true", …} as [process=true,…]. */
static void writeOptions(pvaValue *v, const pvaType *type, unsigned node, int *process)
{
    unsigned i, child = node + 1;

    ebpfMonPvaPuts(v->out, "[");
    for (i = 0; i < type->node[node].children && !pvaFailed(v->buf); i++, child = type->node[child].next) {
        ebpfMonPvaPuts(v->out, i ? "," : "");
        ebpfMonPvaPuts(v->out, pvaName(type, child));
        ebpfMonPvaPuts(v->out, "=");
        size_t at = v->out->length;
        ebpfMonPvaNode(v, type, child, pvaPlain);
        if (process && !strcmp(pvaName(type, child), "process")) {
            *process = v->out->length == at + 4 && !memcmp(v->out->text + at, "true", 4);
        }
    }
    ebpfMonPvaPuts(v->out, "]");
}

/* Writes value,alarm{severity} between the brackets "open" and "close". Of "record", only its options are written. */
static void writeFields(pvaValue *v, const pvaType *type, unsigned node, const char *open, const char *close,
    int *process)
{
    unsigned i, child = node + 1;
    int opened = !strcmp(open, "(");

    if (opened) {
        ebpfMonPvaPuts(v->out, open);
    }
    int first = 1;
    for (i = 0; i < type->node[node].children && !pvaFailed(v->buf); i++, child = type->node[child].next) {
        const pvaNode *n = &type->node[child];
        int isStruct = n->code == pvaStruct && !n->array;

        if (isStruct && !strcmp(pvaName(type, child), "_options")) {
            writeOptions(v, type, child, process);
            continue;
        }
        ebpfMonPvaPuts(v->out, !first ? "," : opened ? "" : open);
        opened = 1;
        first = 0;
        ebpfMonPvaPuts(v->out, pvaName(type, child));
        if (isStruct) {
            writeFields(v, type, child, "{", "}", NULL);
        } else {
            ebpfMonPvaPuts(v->out, "=");
            ebpfMonPvaNode(v, type, child, pvaPlain);
        }
    }
    if (opened) {
        ebpfMonPvaPuts(v->out, close);
    }
}

void ebpfMonPvaOptions(pvaValue *v, const pvaType *type, int *process)
{
    pvaOut *out = v->out, rest;
    unsigned i, child = 1;

    if (type->unknown || type->node[0].code != pvaStruct || type->node[0].array) {
        v->unknown = 1;
        return;
    }
    rest.length = rest.full = 0;
    for (i = 0; i < type->node[0].children && !pvaFailed(v->buf); i++, child = type->node[child].next) {
        const char *name = pvaName(type, child);
        int isStruct = type->node[child].code == pvaStruct && !type->node[child].array;
        int record = isStruct && !strcmp(name, "record");

        v->out = record ? out : &rest;
        ebpfMonPvaPuts(v->out, name);
        if (record) {
            writeFields(v, type, child, "{", "}", process);
        } else if (isStruct) {
            writeFields(v, type, child, "(", ")", NULL);
        } else {
            ebpfMonPvaPuts(v->out, "=");
            ebpfMonPvaNode(v, type, child, pvaPlain);
        }
    }
    v->out = out;
    ebpfMonPvaPut(out, rest.text, rest.length);
    out->full |= rest.full;
}
