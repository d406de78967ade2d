/* SPDX-License-Identifier: BSD-3-Clause */
/* probe/mappedTable.h, with a file in memory in the place of a BPF array. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "probe/mappedTable.h"

#define SIZE (3u << 20)

static int isMapped(const ebpfMonMappedTable *table, size_t at)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = table->base + at / page * page;

    return mprotect(p, page, PROT_READ | PROT_WRITE) == 0 && msync(p, page, MS_SYNC) == 0;
}

MAIN(testMappedTable)
{
    ebpfMonMappedTable table = { .base = NULL };
    char byte = 0, *base;
    int fd = memfd_create("table", 0);

    testPlan(12);
    if (fd < 0 || ftruncate(fd, SIZE))
        testAbort("no file in memory");
    testOk1(ebpfMonMappedTableOpen(&table, fd, SIZE - 5) == 0 && table.size == SIZE && table.mapped == 0);
    base = table.base;
    testOk1(ebpfMonMappedTableUse(&table, 10) == 0 && table.mapped >= 10 && table.mapped < SIZE / 4);
    table.base[9] = 'a';
    testOk1(ebpfMonMappedTableUse(&table, 10) == 0 && ebpfMonMappedTableUse(&table, 0) == 0);
    testOk1(ebpfMonMappedTableUse(&table, SIZE / 2) == 0 && table.mapped >= SIZE / 2 && table.mapped < SIZE);
    testOk(table.base == base && table.base[9] == 'a', "what was there stays where it was");
    table.base[SIZE / 2 - 1] = 'b';
    testOk1(pread(fd, &byte, 1, 9) == 1 && byte == 'a');
    testOk(pread(fd, &byte, 1, SIZE / 2 - 1) == 1 && byte == 'b', "each part is mapped at its place");
    testOk1(ebpfMonMappedTableUse(&table, SIZE) == 0 && table.mapped == SIZE && isMapped(&table, SIZE - 1));
    testOk(ebpfMonMappedTableUse(&table, SIZE + 1) == -1, "there are no more parts");
    ebpfMonMappedTableClose(&table);
    testOk1(table.base == NULL);
    ebpfMonMappedTableClose(&table);
    testPass("closing twice does nothing");
    testOk(ebpfMonMappedTableOpen(&table, -1, SIZE) == 0 && ebpfMonMappedTableUse(&table, 1) == -1, "a map that does not exist");
    ebpfMonMappedTableClose(&table);
    close(fd);
    return testDone();
}
