/* SPDX-License-Identifier: BSD-3-Clause */
/* The chain that triggered a CP link is found by the time stamp in the link's struct caLink. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "trace/trace.h"
#include "traceIoc.h"

static ebpfMonTargets *targets;
static ebpfMonCpLinkSources *sources;

/* A CP link with the begin of its struct caLink, which has a time stamp at "stampAt". */
static ebpfMonCpLink makeLink(const void *at, uint64_t stamp, unsigned stampAt)
{
    ebpfMonCpLink link = { .at = (uintptr_t)at };

    memcpy(link.start + stampAt, &stamp, sizeof(stamp));
    return link;
}

static void setLink(uint32_t record, char *name)
{
    struct layoutPvLink *link = &sceneMemory[record].inp;

    link->precord = (uintptr_t)&sceneMemory[record];
    link->type = EBPFMON_LINK_CA;
    link->pvlMask = EBPFMON_PVL_CP;
    link->pvname = (uintptr_t)name;
}

static ebpfMonCpLinkResult look(ebpfMonTarget *t, uint32_t root, ebpfMonCpLink *link, ebpfMonCpLinkSource *source)
{
    ebpfMonCpLinkResult result;

    memset(source, 0, sizeof(*source));
    ebpfMonTargetsLock(targets);
    result = ebpfMonCpLinkSourcesFind(sources, t, root, link, source);
    ebpfMonTargetsUnlock(targets);
    return result;
}

static int find(ebpfMonTarget *t, uint32_t root, ebpfMonCpLink link, ebpfMonCpLinkSource *source)
{
    return look(t, root, &link, source) == ebpfMonCpLinkFound;
}

/* What is known while no chain is found. */
static void testAwaited(ebpfMonTarget *t, char *name)
{
    ebpfMonChainId chain = { .iocId = t->iocId, .tid = 10, .begin = 6999 * MS };
    uint64_t stamp = sceneStamp(7000 * MS);
    ebpfMonCpLink link = makeLink(&sceneMemory[5].inp, stamp, 60);
    ebpfMonCpLinkSource s;

    testOk(look(t, 5, &link, &s) == ebpfMonCpLinkAwaited && link.sourcePid == (uint32_t)t->pid,
           "a chain may come from the IOC that has the record");
    strcpy(name, "R3");
    ebpfMonCpLinkSourcesAdd(sources, &chain, 0, 0, 2, stamp);
    testOk(look(t, 5, &link, &s) == ebpfMonCpLinkFound, "… and is found by the name that was read first");
    memset(link.name, 0, sizeof(link.name));
    testOk(look(t, 5, &link, &s) == ebpfMonCpLinkAwaited, "R3 has another time stamp");
    t->level = ebpfMonLevelPuts;
    testOk(look(t, 5, &link, &s) == ebpfMonCpLinkUnknown, "no chain comes from an IOC whose chains are not watched");
    t->level = ebpfMonLevelTrace;
    strcpy(link.name, "X9");
    testOk(look(t, 5, &link, &s) == ebpfMonCpLinkUnknown, "nor if no IOC has the record");
    strcpy(name, "R2.VAL");
}

MAIN(testCpLinkSources)
{
    static char name[80] = "R2.VAL", unknown[80] = "X9";
    uint64_t stamp = sceneStamp(5000 * MS), other = sceneStamp(5000 * MS + 1);
    struct layoutPvLink *inp = &sceneMemory[5].inp;
    ebpfMonTarget *first, *second;
    ebpfMonChainId chain = { .tid = 10, .begin = 4999 * MS };
    ebpfMonCpLinkSource s;

    testPlan(15);
    targets = ebpfMonTargetsNew();
    sceneNewIoc();
    first = sceneTarget;
    ebpfMonTargetsAdd(targets, first);
    first->eventThread.reads = NULL; /* what is needed is read at once */
    sources = ebpfMonCpLinkSourcesNew(targets);
    chain.iocId = first->iocId;
    setLink(5, name);
    testOk(!find(first, 5, makeLink(inp, stamp, 60), &s), "no chain is known at first");
    ebpfMonCpLinkSourcesAdd(sources, &chain, 0, 3, 2, stamp);
    testOk(find(first, 5, makeLink(inp, stamp, 60), &s) && ebpfMonChainIdIsSame(&s.chain, &chain) && s.place == 3,
           "the source is the chain that set this time stamp of the record");
    testOk(strcmp(s.record, "R2") == 0 && strcmp(s.root, "R0") == 0 && !s.ioc[0], "%s, chain of %s", s.record, s.root);
    testOk(find(first, 5, makeLink(inp, stamp, 4), &s), "the time stamp may be anywhere in the struct caLink");
    testOk(!find(first, 5, makeLink(inp, other, 60), &s), "a record with another time stamp has no source");
    testOk(!find(first, 6, makeLink(inp, stamp, 60), &s), "neither has the link of another record");
    inp->type = EBPFMON_LINK_DB;
    testOk(!find(first, 5, makeLink(inp, stamp, 60), &s), "nor a link that is not a CA link any more");
    setLink(5, unknown);
    testOk(!find(first, 5, makeLink(inp, stamp, 60), &s), "nor a link to a record that no IOC of this host has");
    setLink(5, name);
    testAwaited(first, name);
    ebpfMonCpLinkSourcesAdd(sources, &chain, 0, 0, 3, other);
    testOk(!find(first, 5, makeLink(inp, other, 60), &s), "nor another record with this time stamp");

    /* another IOC with the same records: its link watches the record of the first IOC */
    sceneNewIoc();
    second = sceneTarget;
    strcpy(second->name, "secondIoc");
    ebpfMonTargetsAdd(targets, second);
    second->eventThread.reads = NULL;
    testOk(find(second, 5, makeLink(inp, stamp, 60), &s) && s.chain.iocId == first->iocId &&
           strcmp(s.ioc, "sceneIoc") == 0, "the source may be in another IOC: %s", s.ioc);
    ebpfMonCpLinkSourcesFree(sources);
    return testDone();
}
