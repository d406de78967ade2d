/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions and variables in the files of a process that has mapped much else: shared/functionSite.h, with this program
 * as the process. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "shared/functionSite.h"

#define OTHERS 6000 /* mappings without a file, as stacks and arenas of some thousand threads */

static const ebpfMonFunctionWanted getppidOfC = { .object = "libc.so*", .symbol = "getppid", .offset = 1 };

/* The kernel puts them before the libraries. Neighbours differ in what is allowed, so none are joined. */
static char *mapOthers(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, OTHERS * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    for (size_t i = 0; i < OTHERS; i += 2)
        if (mprotect(memory + i * page, page, PROT_READ))
            return NULL;
    return memory;
}

static void testFunctions(void)
{
    const ebpfMonFunctionWanted nobody = { .object = "nobody.so", .symbol = "getppid" };
    ebpfMonFunctionPlaces *places;
    char why[200];

    testDiag("functions");
    places = ebpfMonFunctionFind(getpid(), &getppidOfC, why, sizeof(why));
    testOk(places && places->count == 1 &&
           places->place[0].address == (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "getppid") + 1,
           "a function of a library is found%s%s", why[0] ? ": " : "", why);
    free(places);
    testOk(!ebpfMonFunctionFind(getpid(), &nobody, why, sizeof(why)) && strstr(why, "no file like \"nobody.so\""), "%s",
           why);
    testOk(ebpfMonFunctionMappings(getpid(), &getppidOfC) != ebpfMonFunctionMappings(getpid(), &nobody),
           "its file is known by its mappings");
}

static void testAddresses(void)
{
    uint64_t address = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "getppid");
    ebpfMonFunctionPlace place;

    testDiag("addresses");
    testOk(ebpfMonCodePlaceFind(getpid(), address, 0, 0, &place) == 0, "the file of an address is found");
    testOk(ebpfMonVariableFind(getpid(), "optopt") == (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "optopt"),
           "a variable of a library is found");
    testOk(!ebpfMonVariableFind(getpid(), "nobodyHasThisVariable"), "and no other");
}

MAIN(testMappings)
{
    char *others = mapOthers();

    testPlan(7);
    testOk(others && others < (char *)dlsym(RTLD_DEFAULT, "getppid"), "the other mappings lie before the libraries");
    testFunctions();
    testAddresses();
    return testDone();
}
