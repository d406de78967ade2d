/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of C++ functions. The symbols of a program may have hostile ones, whose texts are gigabytes long. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "code/demangle.h"

#define MB 1024 /* ru_maxrss has KiB */

static void testName(const char *mangled, const char *expected)
{
    char name[256];

    snprintf(name, sizeof(name), "%s", mangled);
    ebpfMonDemangle(name, sizeof(name));
    testOk(strcmp(name, expected) == 0, "%s: %s", mangled, name);
}

static long readMemory(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Each parameter is a function of three parameters of the type before: the text is three times as long each time, 40 MB
 * in the end. With 18 instead of 14 it would be 3 GB. */
static void testLongText(void)
{
    const char *digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char name[256] = "_Z1fPFvvE", was[256];
    long before = readMemory();

    for (int i = 0; i < 14; i++) {
        size_t end = strlen(name);

        snprintf(name + end, sizeof(name) - end, "PFvS%c_S%c_S%c_E", digits[2 * i], digits[2 * i], digits[2 * i]);
    }
    strcpy(was, name);
    ebpfMonDemangle(name, sizeof(name));
    testOk(strcmp(name, was) == 0, "a name of %u characters stays", (unsigned)strlen(name));
    testOk(readMemory() - before < 4 * MB, "it takes %ld KiB", readMemory() - before);
}

MAIN(testDemangle)
{
    testPlan(8);
    testName("_ZN9casIntfOS4pollEv", "casIntfOS::poll()");
    testName("_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<int, std::allocator<int> >::push_back(int&&)");
    testName("_Z4swapISsEvRT_S1_", "void swap<std::string>(std::string&, std::string&)");
    testName("dbProcess", "dbProcess");
    testName("_Z", "_Z");
    testName("", "");
    testLongText();
    return testDone();
}
