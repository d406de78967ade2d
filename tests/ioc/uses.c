/* SPDX-License-Identifier: BSD-3-Clause */
/* Routines of aSub records that use memory, files, names and code in a known way. Input A is how much, unless its
 * routine says otherwise. What keeps memory never gives it back. */
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <aSubRecord.h>
#include <cantProceed.h>
#include <epicsExport.h>
#include <registryFunction.h>

#define PAGE 4096

/* noipa: each of these stays a function of its own, that returns to its caller. */
#define ALONE __attribute__((noipa))

void *keepLarge(size_t size), *keepSmall(size_t count);
void passPlace(int number);

/* One block, by a function of libCom that calls the C library. */
ALONE void *keepLarge(size_t size)
{
    char *block = callocMustSucceed(1, size, "keepLarge");

    *(volatile char *)block = 1;
    return block;
}

/* Blocks of 1000 bytes. */
ALONE void *keepSmall(size_t count)
{
    volatile char *block = NULL;

    while (count--) {
        block = malloc(1000);
        if (block)
            *block = 1;
    }
    return (void *)block;
}

static long keepOne(aSubRecord *prec)
{
    return keepLarge((size_t)*(double *)prec->a) ? 0 : -1;
}

static long keepMany(aSubRecord *prec)
{
    return keepSmall((size_t)*(double *)prec->a) ? 0 : -1;
}

/* Reads A pages of the file TOUCHED_FILE as memory, one by one: MADV_RANDOM keeps the kernel from reading more. */
static long touchFile(aSubRecord *prec)
{
    size_t pages = (size_t)*(double *)prec->a;
    const char *path = getenv("TOUCHED_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char *p = fd < 0 ? MAP_FAILED : mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    volatile char seen = 0;

    if (fd >= 0)
        close(fd);
    if (p == MAP_FAILED)
        return -1;
    madvise(p, pages * PAGE, MADV_RANDOM);
    for (size_t i = 0; i < pages; i++)
        seen += p[i * PAGE];
    munmap(p, pages * PAGE);
    return 0;
}

/* Looks the name up that input A has. */
static long lookUp(aSubRecord *prec)
{
    struct addrinfo *found = NULL;

    if (getaddrinfo(prec->a, NULL, NULL, &found))
        return -1;
    freeaddrinfo(found);
    return 0;
}

/* Passes the instruction known_place if the number can be divided by 3. */
ALONE void passPlace(int number)
{
    if (number % 3 == 0)
        __asm__ volatile("known_place: nop" : : : "memory");
    __asm__ volatile("nop" : : : "memory");
}

/* Calls it with 0, 1, … A - 1. */
static long passPlaces(aSubRecord *prec)
{
    for (int i = 0; i < (int)*(double *)prec->a; i++)
        passPlace(i);
    return 0;
}

epicsRegisterFunction(keepOne);
epicsRegisterFunction(keepMany);
epicsRegisterFunction(touchFile);
epicsRegisterFunction(lookUp);
epicsRegisterFunction(passPlaces);
