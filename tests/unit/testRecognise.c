/* SPDX-License-Identifier: BSD-3-Clause */
/* code/imageFile.h: the functions recognised in a program with a static Base are the same as its symbols say. In
 * other programs none is recognised. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <epicsUnitTest.h>
#include <testMain.h>
#include "code/elfSymbols.h"
#include "code/imageFile.h"

#define ALL ((int)ebpfMonFnCount + (int)ebpfMonVarCount)

static const char *const variables[ebpfMonVarCount] = {
    "pdbbase", "interruptAccept", "asActive", "epicsReleaseVersion", "clientQ", "lset_stack_count",
};

/* tests/ioc/O.ARCH/staticIoc; we run in tests/unit/O.ARCH. Or the static program with symbols that EBPFMON_PROGRAM
 * names. */
static int openProgram(void)
{
    char cwd[PATH_MAX - 64], path[PATH_MAX];
    const char *other = getenv("EBPFMON_PROGRAM");

    if (other)
        return open(other, O_RDONLY | O_CLOEXEC);
    if (!getcwd(cwd, sizeof(cwd)))
        return -1;
    snprintf(path, sizeof(path), "../../ioc%s/staticIoc", strrchr(cwd, '/'));
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void compare(int fd)
{
    ebpfMonElfSymbol symbol[ALL];
    const char *names[ALL];
    ebpfMonRecognised found;
    ebpfMonElfFile file;

    memcpy(names, ebpfMonFnNames, sizeof(ebpfMonFnNames));
    memcpy(names + ebpfMonFnCount, variables, sizeof(variables));
    if (ebpfMonElfOpen(&file, fd))
        testAbort("staticIoc cannot be read");
    ebpfMonElfFind(&file, names, ALL, symbol);
    ebpfMonElfClose(&file);
    testOk(ebpfMonRecognise(fd, &found) == 0, "an IOC is recognised");
    for (int i = 0; i < ALL; i++) {
        const ebpfMonElfSymbol *by = i < ebpfMonFnCount ? &found.fn[i] : &found.var[i - ebpfMonFnCount];

        if (i == ebpfMonFnAddClient) { /* then the user that a client of pvAccess claims is not known without packets */
            testOk(!by->vaddr, "%s is not recognised", names[i]);
            continue;
        }
        testOk(by->vaddr == symbol[i].vaddr, "%s: %llx, the symbol says %llx", names[i], (unsigned long long)by->vaddr,
               (unsigned long long)symbol[i].vaddr);
    }
    testOk(!found.isOldNotify, "dbNotify is found by the name that it has since 3.15");
}

MAIN(testRecognise)
{
    ebpfMonRecognised found;
    int fd = openProgram();

    testPlan(ALL + 3);
    if (fd < 0)
        testAbort("tests/ioc is not built");
    compare(fd);
    close(fd);
    fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    testOk(ebpfMonRecognise(fd, &found) == -1, "this program is not recognised as an IOC");
    close(fd);
    return testDone();
}
