/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probe/mappedTable.h"

#define STEP (256u << 10) /* bytes that are mapped at a time: a compromise between many mappings and unused memory */

static size_t roundUp(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

int ebpfMonMappedTableOpen(ebpfMonMappedTable *table, int fd, size_t size)
{
    void *base;

    size = roundUp(size, (size_t)sysconf(_SC_PAGESIZE));
    base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return -1;
    *table = (ebpfMonMappedTable){ .base = base, .size = size, .fd = fd };
    return 0;
}

int ebpfMonMappedTableUse(ebpfMonMappedTable *table, size_t bytes)
{
    size_t to = roundUp(bytes, STEP);

    if (bytes > table->size) {
        errno = EINVAL;
        return -1;
    }
    if (to > table->size)
        to = table->size;
    if (to <= table->mapped)
        return 0;
    if (mmap(table->base + table->mapped, to - table->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, table->fd,
             (off_t)table->mapped) == MAP_FAILED)
        return -1;
    table->mapped = to;
    return 0;
}

void ebpfMonMappedTableClose(ebpfMonMappedTable *table)
{
    if (table->base)
        munmap(table->base, table->size);
    *table = (ebpfMonMappedTable){ .base = NULL };
}
