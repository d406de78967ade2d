/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "ioc/baseLayout.h"
#include "put/putWriter.h"
#include "put/recentLinks.h"
#include "put/threadJob.h"
#include "put/writerText.h"

struct ebpfMonPutWriters {
    ebpfMonPutClients       *clients;    /* these three are the caller's */
    ebpfMonLinkWrites       *linkWrites;
    const ebpfMonThreadPuts *threadPuts;
    ebpfMonRecentLinks      *recentLinks;
};

ebpfMonPutWriters *ebpfMonPutWritersNew(ebpfMonPutClients *clients, ebpfMonLinkWrites *linkWrites,
                                        const ebpfMonThreadPuts *threadPuts)
{
    ebpfMonPutWriters *writers = calloc(1, sizeof(*writers));

    if (!writers)
        return NULL;
    writers->recentLinks = ebpfMonRecentLinksNew();
    if (!writers->recentLinks) {
        free(writers);
        return NULL;
    }
    writers->clients = clients;
    writers->linkWrites = linkWrites;
    writers->threadPuts = threadPuts;
    return writers;
}

void ebpfMonPutWritersFree(ebpfMonPutWriters *writers)
{
    if (!writers)
        return;
    ebpfMonRecentLinksFree(writers->recentLinks);
    free(writers);
}

void ebpfMonPutWritersLookUp(ebpfMonPutWriters *writers, const struct ebpfMonHead *head, const struct ebpfMonWho *who,
                             const struct ebpfMonCauseEvent *cause, ebpfMonPutEventClients *clients)
{
    clients->hasClient = ebpfMonPutClientsFindByThread(writers->clients, head, who, &clients->client);
    clients->hasCauseClient = cause && ebpfMonPutClientsFindByThread(writers->clients, head, &cause->who,
                                                                     &clients->causeClient);
}

static const char *findRecordName(ebpfMonTarget *t, uint64_t precord)
{
    long index = t->cat && precord ? ebpfMonCatalogueFindAddr(t->cat, precord) : -1;

    return index >= 0 ? ebpfMonCatalogueName(t->cat, (uint32_t)index) : "";
}

static int isMainThread(const struct ebpfMonHead *head)
{
    return head->tid == head->tgid;
}

/* A client that is an IOC which we watch, perhaps the same one: which of its records wrote? */
static void findCaLink(ebpfMonPutWriters *writers, const struct ebpfMonPutEvent *ev, uint32_t pid, ebpfMonPut *put)
{
    char channel[EBPFMON_CHANNEL_MAX];

    ebpfMonTextCopyBytes(channel, sizeof(channel), ev->channel, EBPFMON_CHANNEL_MAX - 1);
    ebpfMonLinkWritesSetWriter(writers->linkWrites, pid, channel, ev->head.ktime, put);
}

static void setLink(const ebpfMonTarget *t, ebpfMonLinkOwner owner, ebpfMonPut *put)
{
    put->through = ebpfMonByLink;
    snprintf(put->link, sizeof(put->link), "%s.%.6s", ebpfMonCatalogueName(t->cat, owner.rec),
             t->cat->field[owner.field].name);
}

/* A database link writes by a DBADDR of its own (dbDbPutValue, dbDbLink.c), so its address names the link. Nonzero: it
 * was a link. */
static int findDatabaseLink(ebpfMonPutWriters *writers, ebpfMonTarget *t, const struct ebpfMonPutEvent *ev,
                            ebpfMonPut *put)
{
    ebpfMonLinkOwner owner;

    if (ebpfMonRecentLinksFind(writers->recentLinks, t, ev->addr, ev->head.ktime, &owner))
        return 0;
    setLink(t, owner, put);
    return 1;
}

void ebpfMonPutWritersAddLink(ebpfMonPutWriters *writers, ebpfMonTarget *t, const ebpfMonLinkPut *change, uint64_t at)
{
    const ebpfMonField *f = t->cat ? ebpfMonCatalogueField(t->cat, change->pfldDes) : NULL;
    long index = t->cat ? ebpfMonCatalogueFindAddr(t->cat, change->precord) : -1;

    if (change->isLink && f && f->type == ebpfMonDbfOutlink && index >= 0)
        ebpfMonRecentLinksAdd(writers->recentLinks, t->iocId,
                              (ebpfMonLinkOwner){ .rec = (uint32_t)index, .field = (uint32_t)(f - t->cat->field) },
                              at);
}

void ebpfMonPutWritersFindLateLink(ebpfMonTarget *t, uint64_t addr, ebpfMonPut *put)
{
    int isStartUp = put->through == ebpfMonByInit;
    ebpfMonLinkOwner owner;

    if (!t->cat || !addr || ebpfMonLinkTableFind(t->cat->links, addr, &owner) || owner.rec >= t->cat->count)
        return;
    setLink(t, owner, put);
    if (put->chain.iocId) /* it was taken for a put that begins a chain */
        put->source = put->chain;
    put->chain.iocId = 0;
    if (isStartUp)
        snprintf(put->cause, sizeof(put->cause), "%s", ebpfMonThroughName(ebpfMonByInit));
    else
        ebpfMonThreadJobDescribe(t, put->thread, 0, 0, put->cause, sizeof(put->cause));
}

/* The job of a thread of which an event carries the name, perhaps without a terminator. */
static void describeComm(ebpfMonTarget *t, const char comm[EBPFMON_COMM_MAX], int isMain, uint64_t root, char *buf,
                         size_t size)
{
    char name[EBPFMON_COMM_MAX];

    ebpfMonTextCopyBytes(name, sizeof(name), comm, EBPFMON_COMM_MAX - 1);
    ebpfMonThreadJobDescribe(t, name, isMain, root, buf, size);
}

/* The root by which the job of this thread is described; 0: a CA link began the chain with a put (threadJob.h). */
static uint64_t findJobRoot(const ebpfMonPutWriters *writers, const ebpfMonTarget *t, const char *comm, uint32_t tid,
                            uint64_t root, uint64_t begin)
{
    return strncmp(comm, "dbCaLink", 9) == 0 &&
                   ebpfMonThreadPutsHaveBegun(writers->threadPuts, t->iocId, tid, root, begin) ? 0 : root;
}

/* What started the chain in which the put is made: the job of the thread, and if another chain handed that chain over,
 * what started the other one. */
static void setChainCause(ebpfMonPutWriters *writers, ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, uint64_t root,
                          ebpfMonPut *put)
{
    const struct ebpfMonSourceChain *source = &ev->source;
    const char *sourceRoot = source->begin ? findRecordName(t, source->root) : "";
    char sourceCause[96], job[40];

    ebpfMonThreadJobDescribe(t, put->thread, isMainThread(&ev->head),
                             findJobRoot(writers, t, put->thread, ev->head.tid, root, ev->begin), put->cause,
                             sizeof(put->cause));
    if (!sourceRoot[0])
        return;
    snprintf(sourceCause, sizeof(sourceCause), "%s",
             ebpfMonThreadPutsFindWriter(writers->threadPuts, t->iocId, source));
    if (!sourceCause[0])
        describeComm(t, source->comm, (int)source->isMain, source->root, sourceCause, sizeof(sourceCause));
    snprintf(job, sizeof(job), "%.39s", put->cause);
    snprintf(put->cause, sizeof(put->cause), "%s, chain of %s, %s", job, sourceRoot, sourceCause);
}

/* The put is made while a chain completes an asynchronous record: its cause is the one that began the record.
 * "root": of the chain in which the put is made. */
static void setAsyncCause(ebpfMonTarget *t, const struct ebpfMonCauseEvent *cause,
                          const ebpfMonPutEventClients *clients, uint64_t root, ebpfMonPut *put)
{
    uint64_t first = cause->root ? cause->root : root;

    if (clients->hasCauseClient) {
        ebpfMonPutClientSet(&clients->causeClient, put);
        ebpfMonWriterTextFormatCause(put->user, put->host, put->isUnsure, put->cause, sizeof(put->cause));
    } else {
        int isPut = strncmp(cause->who.comm, "dbCaLink", 9) == 0 && cause->putRecord == first; /* as findJobRoot */

        describeComm(t, cause->who.comm, (int)cause->byMain, isPut ? 0 : first, put->cause, sizeof(put->cause));
    }
    ebpfMonTextSet(put->root, sizeof(put->root), findRecordName(t, first));
}

/* The way by which the put came. Nonzero: the cause is known with it. */
static int setOrigin(ebpfMonPutWriters *writers, ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, int byClient,
                     ebpfMonPut *put)
{
    int hasShell;

    if (findDatabaseLink(writers, t, ev, put))
        return 0;
    if (byClient && ev->root && ev->root != ev->precord) { /* a routine, or a driver, of the chain that it began */
        put->through = ebpfMonByThread;
        return 0;
    }
    if (byClient) {
        put->through = ev->who.isCA ? ebpfMonByCa : ebpfMonByPva;
        if (put->peerPid && (!ev->root || ev->root == ev->precord))
            findCaLink(writers, ev, put->peerPid, put);
        return 1;
    }
    if (!t->running && isMainThread(&ev->head)) {
        put->through = ebpfMonByInit;
        return 0;
    }
    /* the main thread of an IOC runs its shell, but for that of a script interpreter */
    hasShell = isMainThread(&ev->head) && strncmp(ev->who.comm, "python", 6) != 0;
    put->through = hasShell ? ebpfMonByShell : ebpfMonByThread;
    if (strncmp(put->thread, "dbCaLink", 8) == 0) /* dbCa.c: a CA link to a record of its own IOC */
        findCaLink(writers, ev, (uint32_t)t->pid, put);
    return put->through == ebpfMonByCaLink;
}

/* The chain that the put began, or the one that made it. */
static void setChains(const ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, const struct ebpfMonCauseEvent *cause,
                      ebpfMonPut *put)
{
    ebpfMonChainId present = { .iocId = t->iocId, .tid = ev->head.tid, .begin = ev->begin };

    if (ev->begin && put->through != ebpfMonByLink && ev->root == ev->precord) {
        put->chain = present;
        cause = NULL;
    } else if (ev->begin) {
        put->source = present;
    }
    if (cause && cause->begin)
        put->source = (ebpfMonChainId){ .iocId = t->iocId, .tid = cause->sourceTid, .begin = cause->begin };
    else if (ev->source.begin && put->through != ebpfMonByCa && put->through != ebpfMonByPva)
        put->source = (ebpfMonChainId){ .iocId = t->iocId, .tid = ev->source.tid, .begin = ev->source.begin };
}

/* Writer, way and cause. */
static void findWriterOf(ebpfMonPutWriters *writers, ebpfMonTarget *t, const struct ebpfMonPutEvent *ev,
                         const struct ebpfMonCauseEvent *cause, const ebpfMonPutEventClients *clients,
                         ebpfMonPut *put)
{
    uint64_t root = ev->root;

    if (clients->hasClient)
        ebpfMonPutClientSet(&clients->client, put);
    ebpfMonTextCopyBytes(put->thread, sizeof(put->thread), ev->who.comm, EBPFMON_COMM_MAX - 1);
    if (setOrigin(writers, t, ev, clients->hasClient, put))
        return;
    if (put->through != ebpfMonByLink && root == ev->precord) {
        /* The chain began with this put: it took the lock itself. The record may be busy with an earlier cause; that
         * made no put of this thread. */
        root = 0;
        cause = NULL;
    }
    if (cause) {
        setAsyncCause(t, cause, clients, root, put);
        return;
    }
    ebpfMonTextSet(put->root, sizeof(put->root), findRecordName(t, root));
    if (clients->hasClient)
        ebpfMonWriterTextFormatCause(put->user, put->host, put->isUnsure, put->cause, sizeof(put->cause));
    else if (put->root[0] || put->through == ebpfMonByLink)
        setChainCause(writers, t, ev, root, put);
}

void ebpfMonPutWritersFind(ebpfMonPutWriters *writers, ebpfMonTarget *t, const struct ebpfMonPutEvent *ev,
                           const struct ebpfMonCauseEvent *cause, const ebpfMonPutEventClients *clients,
                           ebpfMonPut *put)
{
    findWriterOf(writers, t, ev, cause, clients, put);
    setChains(t, ev, cause, put);
}

int ebpfMonPutWritersFindLinkWrite(const ebpfMonPutWriters *writers, ebpfMonTarget *t,
                                   const struct ebpfMonCauseEvent *ev, const ebpfMonPutEventClients *clients,
                                   ebpfMonLinkWrite *write)
{
    uint32_t index;
    const ebpfMonField *f = t->cat ? ebpfMonCatalogueFieldAt(t->cat, ev->link, &index) : NULL;

    memset(write, 0, sizeof(*write));
    if (!f)
        return 0;
    write->pid = (uint32_t)t->pid;
    write->at = ev->head.ktime;
    write->step = (ebpfMonChainId){ .iocId = ev->begin ? t->iocId : 0, .tid = ev->head.tid, .begin = ev->begin };
    write->chain = write->step;
    if (ev->sourceBegin)
        write->chain = (ebpfMonChainId){ .iocId = t->iocId, .tid = ev->sourceTid, .begin = ev->sourceBegin };
    ebpfMonTextCopyBytes(write->channel, sizeof(write->channel), ev->name, EBPFMON_CHANNEL_MAX - 1);
    snprintf(write->link, sizeof(write->link), "%s.%.6s", ebpfMonCatalogueName(t->cat, index), f->name);
    snprintf(write->ioc, sizeof(write->ioc), "%s", t->name);
    snprintf(write->root, sizeof(write->root), "%s", findRecordName(t, ev->root));
    if (clients->hasClient)
        ebpfMonWriterTextFormatCause(clients->client.user, clients->client.host, clients->client.isUnsure,
                                     write->cause, sizeof(write->cause));
    else
        describeComm(t, ev->who.comm, (int)ev->byMain,
                     ev->sourceBegin ? ev->root
                                     : findJobRoot(writers, t, ev->who.comm, ev->head.tid, ev->root, ev->begin),
                     write->cause, sizeof(write->cause));
    return 1;
}
