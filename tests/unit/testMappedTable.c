/* SPDX-License-Identifier: BSD-3-Clause */
/* probe/mappedTable.h, with files in memory in the place of BPF arrays. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "probe/mappedTable.h"

#define BLOCK  (1u << 20)
#define SIZE   (3u << 20)
#define BLOCKS (SIZE / BLOCK)

/* The blocks that were made. The test has a file of its own for each, to see what the table wrote. */
typedef struct {
    int      fd[BLOCKS];
    unsigned made;
    unsigned most; /* more are refused */
} blocks;

static int makeBlock(void *arg, unsigned block)
{
    blocks *c = arg;

    if (block != c->made || c->made == c->most) {
        errno = ENOMEM;
        return -1;
    }
    c->fd[block] = memfd_create("block", 0);
    if (c->fd[block] < 0 || ftruncate(c->fd[block], BLOCK))
        testAbort("no file in memory");
    c->made++;
    return dup(c->fd[block]);
}

static char readByte(const blocks *c, size_t at)
{
    char byte = 0;

    return pread(c->fd[at / BLOCK], &byte, 1, (off_t)(at % BLOCK)) == 1 ? byte : 0;
}

static void testGrowth(void)
{
    ebpfMonMappedTable table = { .base = NULL };
    blocks c = { .most = BLOCKS };
    char *base;

    testOk1(ebpfMonMappedTableOpen(&table, BLOCK, SIZE - 5, makeBlock, &c) == 0 && table.size == SIZE &&
            table.mapped == 0);
    testOk(c.made == 0, "no block before it is needed");
    base = table.base;
    testOk1(ebpfMonMappedTableUse(&table, 10) == 0 && table.mapped >= 10 && table.mapped < BLOCK && c.made == 1);
    table.base[9] = 'a';
    testOk1(ebpfMonMappedTableUse(&table, 10) == 0 && ebpfMonMappedTableUse(&table, 0) == 0 && c.made == 1);
    testOk1(ebpfMonMappedTableUse(&table, SIZE / 2) == 0 && table.mapped >= SIZE / 2 && table.mapped < SIZE &&
            c.made == 2);
    testOk(table.base == base && table.base[9] == 'a', "what was there stays where it was");
    table.base[BLOCK - 1] = 'b';
    table.base[BLOCK] = 'c';
    table.base[SIZE / 2 - 1] = 'd';
    testOk(readByte(&c, 9) == 'a' && readByte(&c, BLOCK - 1) == 'b' && readByte(&c, BLOCK) == 'c' &&
           readByte(&c, SIZE / 2 - 1) == 'd', "each part is mapped at its place");
    testOk1(ebpfMonMappedTableUse(&table, SIZE) == 0 && table.mapped == SIZE && c.made == BLOCKS && table.made == SIZE);
    table.base[SIZE - 1] = 'e';
    testOk1(readByte(&c, SIZE - 1) == 'e');
    testOk(ebpfMonMappedTableUse(&table, SIZE + 1) == -1, "there are no more parts");
    ebpfMonMappedTableClose(&table);
    testOk1(table.base == NULL);
    ebpfMonMappedTableClose(&table);
    testPass("closing twice does nothing");
}

static void testRefused(void)
{
    ebpfMonMappedTable table = { .base = NULL };
    blocks c = { .most = 1 };

    testOk(ebpfMonMappedTableOpen(&table, 5000, SIZE, makeBlock, &c) == -1, "a block has whole pages");
    testOk1(ebpfMonMappedTableOpen(&table, BLOCK, SIZE, makeBlock, &c) == 0 && ebpfMonMappedTableUse(&table, 1) == 0);
    table.base[0] = 'a';
    testOk(ebpfMonMappedTableUse(&table, SIZE) == -1 && errno == ENOMEM, "no memory for the second block");
    testOk(table.base[0] == 'a' && table.mapped == BLOCK, "the first one stays");
    c.most = BLOCKS;
    testOk(ebpfMonMappedTableUse(&table, SIZE) == 0 && table.mapped == SIZE, "there is memory again");
    ebpfMonMappedTableClose(&table);
}

MAIN(testMappedTable)
{
    testPlan(17);
    testGrowth();
    testRefused();
    return testDone();
}
