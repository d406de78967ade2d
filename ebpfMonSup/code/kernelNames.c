/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code/kernelNames.h"
#include "common/array.h"

typedef struct {
    uint64_t address;
    size_t   name; /* where it begins in "text" */
} Function;

struct ebpfMonKernelNames {
    Function *function; /* by address */
    size_t    count, room;
    char     *text;
    size_t    used, textRoom;
};

static int compareAddresses(const void *a, const void *b)
{
    uint64_t x = ((const Function *)a)->address, y = ((const Function *)b)->address;

    return (x > y) - (x < y);
}

/* 0, or -1: no memory. */
static int addFunction(ebpfMonKernelNames *n, uint64_t address, const char *name)
{
    size_t size = strlen(name) + 1;

    if (ebpfMonArrayGrow(&n->function, &n->room, n->count + 1, 1 << 16, sizeof(*n->function)) ||
        ebpfMonArrayGrow(&n->text, &n->textRoom, n->used + size, 1 << 20, 1))
        return -1;
    n->function[n->count++] = (Function){ address, n->used };
    memcpy(n->text + n->used, name, size);
    n->used += size;
    return 0;
}

ebpfMonKernelNames *ebpfMonKernelNamesRead(void)
{
    ebpfMonKernelNames *n = calloc(1, sizeof(*n));
    FILE *f = n ? fopen("/proc/kallsyms", "re") : NULL;
    char line[512], name[256], type;
    uint64_t address;

    while (f && fgets(line, sizeof(line), f))
        /* without CAP_SYSLOG all addresses are 0 */
        if (sscanf(line, "%" SCNx64 " %c %255s", &address, &type, name) == 3 && address && strchr("tTwW", type) &&
            addFunction(n, address, name))
            break;
    if (f)
        fclose(f);
    if (n && n->count) {
        qsort(n->function, n->count, sizeof(*n->function), compareAddresses);
        return n;
    }
    ebpfMonKernelNamesFree(n);
    return NULL;
}

void ebpfMonKernelNamesFree(ebpfMonKernelNames *n)
{
    if (!n)
        return;
    free(n->function);
    free(n->text);
    free(n);
}

const char *ebpfMonKernelNamesFind(const ebpfMonKernelNames *n, uint64_t address)
{
    size_t low = 0, high = n ? n->count : 0;

    while (low < high) { /* the first one behind it */
        size_t middle = low + (high - low) / 2;

        if (n->function[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? n->text + n->function[low - 1].name : "kernel";
}
