/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/iocFinder.h: the facts about programs that the kernel part gets. */
#include <stddef.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "watch/iocFinder.h"

static struct ebpfMonProgram last; /* what was told */
static int told, lastPlain, hasRoom = 1;

static int setPlain(const struct ebpfMonProgram *program, int isPlain)
{
    if (isPlain && !hasRoom)
        return -1;
    last = *program;
    lastPlain = isPlain;
    told++;
    return 0;
}

static void note(ebpfMonPlainPrograms *plain, const struct ebpfMonProgram *program, ebpfMonProgramIs is, int times)
{
    told = 0;
    for (int i = 0; i < times; i++)
        ebpfMonPlainProgramsNote(plain, program, is);
}

static void testBecomesPlain(void)
{
    static const struct ebpfMonProgram sh = { .inode = 7, .device = 1 }, cc = { .inode = 8, .device = 1 };
    static const struct ebpfMonProgram none = { .inode = 0 };
    ebpfMonPlainPrograms *plain = ebpfMonPlainProgramsNew(setPlain);

    testDiag("a program that is no IOC");
    note(plain, &sh, ebpfMonProgramPlain, 2);
    testOk(told == 0, "two looks are not enough");
    note(plain, &sh, ebpfMonProgramPlain, 1);
    testOk(told == 1 && lastPlain && last.inode == 7 && last.device == 1, "... but three looks are");
    note(plain, &sh, ebpfMonProgramPlain, 3);
    testOk(told == 0, "the kernel part is told once");
    note(plain, &cc, ebpfMonProgramEnded, 11);
    testOk(told == 0, "a process that ended before a look shows less");
    note(plain, &cc, ebpfMonProgramEnded, 1);
    testOk(told == 1 && lastPlain && last.inode == 8, "... but twelve of them are enough");
    note(plain, &none, ebpfMonProgramPlain, 20);
    testOk(told == 0, "a program that is not known is never plain");
    ebpfMonPlainProgramsFree(plain);
    ebpfMonPlainProgramsFree(NULL);
}

static void testIoc(void)
{
    static const struct ebpfMonProgram python = {.inode = 9, .device = 1},
                                       other = {.inode = 9 + EBPFMON_PLAIN_MAX, .device = 1};
    ebpfMonPlainPrograms *plain = ebpfMonPlainProgramsNew(setPlain);

    testDiag("a program that is sometimes an IOC");
    note(plain, &python, ebpfMonProgramPlain, 3);
    told = 0;
    ebpfMonPlainProgramsNoteIoc(plain, 10);
    testOk(told == 0, "another program was found to be an IOC");
    ebpfMonPlainProgramsNoteIoc(plain, 9);
    testOk(told == 1 && !lastPlain && last.inode == 9 && last.device == 1,
           "this program was an IOC: it is not plain any more");
    note(plain, &python, ebpfMonProgramPlain, 20);
    testOk(told == 0, "... and never becomes plain again");
    note(plain, &other, ebpfMonProgramPlain, 20);
    testOk(told == 0, "another program does not take its place");
    note(plain, &other, ebpfMonProgramIoc, 1);
    note(plain, &other, ebpfMonProgramPlain, 20);
    testOk(told == 0, "... but another program of an IOC does");
    ebpfMonPlainProgramsFree(plain);
}

/* The scan found its IOC before a start of this program was told. */
static void testIocFirst(void)
{
    static const struct ebpfMonProgram python = { .inode = 9, .device = 1 },
                                       old = { .inode = 9 + EBPFMON_PLAIN_MAX, .device = 1 };
    ebpfMonPlainPrograms *plain = ebpfMonPlainProgramsNew(setPlain);

    testDiag("a program whose first process that was looked at is an IOC");
    ebpfMonPlainProgramsNoteIoc(plain, 9);
    note(plain, &python, ebpfMonProgramEnded, 20);
    testOk(ebpfMonPlainProgramsHaveIoc(plain, 9) && !ebpfMonPlainProgramsHaveIoc(plain, 9 + EBPFMON_PLAIN_MAX),
           "its processes are IOCs");
    note(plain, &python, ebpfMonProgramPlain, 20);
    testOk(told == 0, "it never becomes plain");
    testOk1(ebpfMonPlainProgramsHaveIoc(plain, 9));
    ebpfMonPlainProgramsNoteInterpreter(plain, 9);
    testOk(!ebpfMonPlainProgramsHaveIoc(plain, 9), "... but of an interpreter not all processes are IOCs");
    ebpfMonPlainProgramsFree(plain);
    plain = ebpfMonPlainProgramsNew(setPlain);
    note(plain, &old, ebpfMonProgramPlain, 3);
    told = 0;
    ebpfMonPlainProgramsNoteIoc(plain, 9);
    testOk(told == 1 && !lastPlain && last.inode == old.inode, "it takes the place of a plain one");
    note(plain, &python, ebpfMonProgramPlain, 20);
    testOk(told == 0, "... and never becomes plain");
    ebpfMonPlainProgramsFree(plain);
}

static void testPlaces(void)
{
    static const struct ebpfMonProgram first = { .inode = 5, .device = 1 }, second = { .inode = 5, .device = 2 };
    ebpfMonPlainPrograms *plain = ebpfMonPlainProgramsNew(setPlain);

    testDiag("places");
    note(plain, &first, ebpfMonProgramPlain, 3);
    note(plain, &second, ebpfMonProgramPlain, 1);
    testOk(told == 1 && !lastPlain && last.device == 1, "a newer program takes the place of an older one");
    hasRoom = 0;
    note(plain, &second, ebpfMonProgramPlain, 3);
    hasRoom = 1;
    note(plain, &second, ebpfMonProgramPlain, 1);
    testOk(told == 1 && lastPlain && last.device == 2, "a program for which the kernel part had no room is told again");
    ebpfMonPlainProgramsFree(plain);
}

MAIN(testPlainPrograms)
{
    testPlan(19);
    testBecomesPlain();
    testIoc();
    testIocFirst();
    testPlaces();
    return testDone();
}
