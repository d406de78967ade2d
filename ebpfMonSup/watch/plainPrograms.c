/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "watch/plainPrograms.h"

/* A program is plain after three looks, or after twelve processes that ended before anyone looked, or some of both. */
#define POINTS_LOOK  4
#define POINTS_ENDED 1
#define POINTS_PLAIN 12

typedef struct {
    struct ebpfMonProgram program; /* inode 0: none */
    unsigned points;
    int isPlain; /* the kernel part knows */
    int isIoc;   /* a process of it was an IOC: never plain */
} place;

struct ebpfMonPlainPrograms {
    ebpfMonSetPlain set;
    place places[EBPFMON_PLAIN_MAX]; /* by inode; a newer program replaces an older one, but no IOC */
};

ebpfMonPlainPrograms *ebpfMonPlainProgramsNew(ebpfMonSetPlain set)
{
    ebpfMonPlainPrograms *plain = calloc(1, sizeof(*plain));

    if (plain)
        plain->set = set;
    return plain;
}

void ebpfMonPlainProgramsFree(ebpfMonPlainPrograms *plain)
{
    free(plain);
}

static place *findPlace(ebpfMonPlainPrograms *plain, uint64_t inode)
{
    return &plain->places[inode % EBPFMON_PLAIN_MAX];
}

static void clearPlain(ebpfMonPlainPrograms *plain, place *p)
{
    if (p->isPlain)
        plain->set(&p->program, 0);
    p->isPlain = 0;
    p->points = 0;
}

void ebpfMonPlainProgramsNote(ebpfMonPlainPrograms *plain, const struct ebpfMonProgram *program, ebpfMonProgramIs is)
{
    place *p = findPlace(plain, program->inode);
    int isSame = p->program.inode == program->inode && p->program.device == program->device;

    if (!program->inode || (!isSame && p->isIoc))
        return;
    if (!isSame) {
        clearPlain(plain, p);
        *p = (place){ .program = *program };
    }
    if (is == ebpfMonProgramIoc) {
        clearPlain(plain, p);
        p->isIoc = 1;
    }
    if (p->isIoc || p->isPlain)
        return;
    p->points += is == ebpfMonProgramPlain ? POINTS_LOOK : POINTS_ENDED;
    if (p->points >= POINTS_PLAIN)
        p->isPlain = plain->set(program, 1) == 0;
}

void ebpfMonPlainProgramsNoteIoc(ebpfMonPlainPrograms *plain, uint64_t inode)
{
    place *p = findPlace(plain, inode);

    if (!inode || p->isIoc) /* no program at the place of an IOC counts as plain */
        return;
    clearPlain(plain, p);
    p->program = (struct ebpfMonProgram){ .inode = inode };
    p->isIoc = 1;
}
