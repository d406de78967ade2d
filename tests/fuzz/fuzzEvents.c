/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The input is a list of events as the kernel part sends them, from an IOC whose addresses, sizes and texts may all be
 * wrong. Bits of a piece's kind: 0 to 3 are the kind of the event. The others say what the fuzzer corrects, so that the
 * input comes further than to the first check: bit 4 the IOC, bit 5 record and field, bit 6 the slots of a chain.
 */
#include "common/text.h"
#include "fakeClients.h"
#include "fakeIoc.h"
#include "otherProcess.h"
#include "fuzz.h"
#include "put/iocPuts.h"
#include "trace/chainParts.h"
#include "trace/traceSpans.h"
#include "trace/traceText.h"

#define SLOT 100
#define SECOND 1000000000ull

int LLVMFuzzerInitialize(int *argc, char ***argv);

static ebpfMonLosses losses;
static ebpfMonAudits *audits;

/* The objects of put/ and trace/, as monitor/ makes them. */
static struct {
    ebpfMonThreadPuts *threadPuts;
    ebpfMonPutClients *clients;
    ebpfMonPutJoin *join;
    ebpfMonLinkWrites *linkWrites;
    ebpfMonIocPuts *puts;
    ebpfMonLinkMessages *messages;
    ebpfMonTraces *traces;
    ebpfMonTraceWalk *walk;
    ebpfMonTraceSpans *spans;
    ebpfMonChainParts *parts;
} m;

static void checkText(const char *text, size_t size)
{
    FUZZ_CHECK(memchr(text, 0, size) && ebpfMonTextIsClean(text));
}

static void onPut(void *arg, const ebpfMonFinishedPut *finished)
{
    const ebpfMonPut *p = finished->put;
    char line[1000];

    checkText(p->pv, sizeof(p->pv));
    checkText(p->channel, sizeof(p->channel));
    checkText(p->val, sizeof(p->val));
    checkText(p->old, sizeof(p->old));
    checkText(p->after, sizeof(p->after));
    checkText(p->user, sizeof(p->user));
    checkText(p->host, sizeof(p->host));
    checkText(p->thread, sizeof(p->thread));
    checkText(p->cause, sizeof(p->cause));
    checkText(p->who, sizeof(p->who));
    checkText(p->origin, sizeof(p->origin));
    FUZZ_CHECK(ebpfMonPutLine(p, line, sizeof(line)) < sizeof(line));
}

static void onLinkWritten(void *arg, const ebpfMonLinkWrite *write)
{
    ebpfMonLinkMessagesAdd(m.messages, write);
}

static void onLinkChanged(void *arg, uint32_t iocId, uint64_t precord)
{
}

static uint64_t countLost(void *arg)
{
    return 0;
}

static void onChain(void *arg, ebpfMonTarget *t, const struct ebpfMonChain *chain, const struct ebpfMonChainRec *rec,
                    uint32_t count)
{
    ebpfMonTracesAddChain(m.traces, t, chain, rec, count);
    ebpfMonTracesFinishChain(m.traces);
}

static int isExporting(void *arg)
{
    return 1;
}

static void addSpan(void *arg, const ebpfMonSpan *span)
{
    checkText(span->name, sizeof(span->name));
}

static int isDescribed(void *arg, ebpfMonTarget *t, const ebpfMonTrace *trace)
{
    return 1;
}

static int onTrace(void *arg, ebpfMonTarget *t, ebpfMonTrace *trace)
{
    static char text[20000];

    FUZZ_CHECK(ebpfMonTraceTextWrite(m.walk, t, trace, SECOND, text, sizeof(text)) < sizeof(text));
    ebpfMonTraceSpansExport(m.spans, t, trace, SECOND);
    return 0;
}

static void make(void)
{
    const ebpfMonIocPutSinks sinks = {
        .finished = onPut, .linkWritten = onLinkWritten, .linkChanged = onLinkChanged,
        .countLost = countLost,
    };
    ebpfMonTracesUses uses = { .targets = fake.targets, .exportsSpans = isExporting, .isDescribed = isDescribed };
    ebpfMonTraceSpansUses spans = { .targets = fake.targets, .sink = { .isWanted = isExporting, .add = addSpan } };

    uses.threadPuts = m.threadPuts = ebpfMonThreadPutsNew();
    m.join = ebpfMonPutJoinNew(NULL);
    m.linkWrites = ebpfMonLinkWritesNew();
    m.puts = ebpfMonIocPutsNew(fake.targets, m.clients, m.join, m.linkWrites, m.threadPuts, &losses, audits, &sinks);
    uses.linkMessages = spans.linkMessages = m.messages = ebpfMonLinkMessagesNew();
    spans.traces = m.traces = ebpfMonTracesNew(&uses, onTrace, NULL);
    spans.salt = 1;
    spans.walk = m.walk;
    m.spans = ebpfMonTraceSpansNew(&spans);
    m.parts = ebpfMonChainPartsNew(&losses, onChain, NULL);
    FUZZ_CHECK(m.threadPuts && m.join && m.linkWrites && m.puts && m.messages && m.traces && m.spans &&
               m.parts);
}

static void clear(void)
{
    ebpfMonIocPutsTick(m.puts, UINT64_MAX, 1);
    ebpfMonTracesTick(m.traces, UINT64_MAX, 1);
    ebpfMonChainPartsFree(m.parts);
    ebpfMonTraceSpansFree(m.spans);
    ebpfMonTracesFree(m.traces);
    ebpfMonLinkMessagesFree(m.messages);
    ebpfMonIocPutsFree(m.puts);
    ebpfMonLinkWritesFree(m.linkWrites);
    ebpfMonPutJoinFree(m.join);
    ebpfMonThreadPutsFree(m.threadPuts);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    fakeMake();
    fake.t->slot = SLOT;
    fake.t->probesOn = EBPFMON_BIT(ebpfMonProgPutReturn);
    m.clients = fakeClientsMake(NULL);
    m.walk = ebpfMonTraceWalkNew();
    audits = ebpfMonAuditsNew();
    return 0;
}

/* An IOC cannot change the times in an event: they are those of the kernel's clock, which is not years ahead. */
static void correctClock(uint64_t *ns)
{
    *ns &= (1ull << 50) - 1;
}

static void correctClocks(struct ebpfMonHead *head, size_t size)
{
    struct ebpfMonChain *chain = (struct ebpfMonChain *)head;

    correctClock((uint64_t *)&head->ktime);
    if (head->kind != EBPFMON_EV_CHAIN || size < sizeof(*chain))
        return;
    chain->begin %= head->ktime + 1;
    correctClock((uint64_t *)&chain->wait);
    correctClock((uint64_t *)&chain->blocked);
    correctClock((uint64_t *)&chain->queueWait);
    correctClock((uint64_t *)&chain->cpuWait);
    correctClock((uint64_t *)&chain->longest);
}

static void correct(unsigned kind, struct ebpfMonHead *head, size_t size)
{
    struct ebpfMonPutEvent *put = (struct ebpfMonPutEvent *)head;
    struct ebpfMonChain *chain = (struct ebpfMonChain *)head;

    if (kind & 16)
        head->iocId = fake.t->iocId;
    if ((kind & 32) && head->kind == EBPFMON_EV_PUT && size >= sizeof(*put)) {
        const ebpfMonField *f = &fake.field[put->pfldDes % fake.fields];
        unsigned rec = (unsigned)(put->precord % FAKE_RECORDS);

        put->precord = fakeAddress(rec);
        put->pfldDes = f->addr;
        put->pfield = put->precord + f->offset;
        put->newLen %= EBPFMON_VAL_MAX + 1;
        put->oldLen %= EBPFMON_VAL_MAX + 1;
    }
    if ((kind & 64) && head->kind == EBPFMON_EV_CHAIN && size >= sizeof(*chain)) {
        struct ebpfMonChainEvent *ev = (struct ebpfMonChainEvent *)head;

        chain->rootSlot = SLOT + chain->rootSlot % FAKE_RECORDS;
        chain->count %= EBPFMON_CHUNK + 1;
        for (uint32_t i = 0; size >= sizeof(*ev) && i < chain->count; i++)
            ev->rec[i].slot = SLOT + ev->rec[i].slot % FAKE_RECORDS;
    }
}

/* Gives an event to the rooms, as monitor/eventThread.c does. */
static void addEvent(const struct ebpfMonHead *head, size_t size)
{
    ebpfMonTarget *t;

    switch (head->kind) {
    case EBPFMON_EV_PUT:
        ebpfMonIocPutsAddPut(m.puts, (const struct ebpfMonPutEvent *)head, size);
        break;
    case EBPFMON_EV_RESULT:
        ebpfMonIocPutsAddResult(m.puts, (const struct ebpfMonResultEvent *)head, size);
        break;
    case EBPFMON_EV_CAUSE:
        ebpfMonIocPutsAddCause(m.puts, (const struct ebpfMonCauseEvent *)head, size);
        break;
    case EBPFMON_EV_CALINK:
        ebpfMonIocPutsAddLinkWrite(m.puts, (const struct ebpfMonCauseEvent *)head, size);
        break;
    case EBPFMON_EV_CHAIN:
        ebpfMonTargetsLock(fake.targets);
        t = ebpfMonTargetsFindById(fake.targets, head->iocId);
        if (t)
            ebpfMonChainPartsAdd(m.parts, t, (const struct ebpfMonChainEvent *)head, size, SECOND);
        ebpfMonTargetsUnlock(fake.targets);
        break;
    case EBPFMON_EV_HANDOVER_BEGIN:
        if (size >= sizeof(struct ebpfMonHandOverEvent))
            ebpfMonTracesBeginHandOver(m.traces, (const struct ebpfMonHandOverEvent *)head);
        break;
    case EBPFMON_EV_HANDOVER_END:
        if (size >= sizeof(struct ebpfMonHandOverEvent))
            ebpfMonTracesEndHandOver(m.traces, (const struct ebpfMonHandOverEvent *)head);
        break;
    }
}

/* Returns the size of the event. The event of a chain is large, so the input may have only its beginning. */
static size_t getEventSize(unsigned kind, size_t length)
{
    return (kind & 15) == EBPFMON_EV_CHAIN && (kind & 64) ? sizeof(struct ebpfMonChainEvent) : length;
}

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    const uint8_t *piece;
    unsigned kind;
    size_t length;

    fuzzProcessClear();
    fuzzProcessSetMemory((uint64_t)(uintptr_t)&fake, &fake, sizeof(fake));
    fake.t->eventThread.lateChains = 0;
    make();
    while (fuzzNextPiece(&data, &size, &kind, &piece, &length)) {
        size_t all = getEventSize(kind, length), n = length < all ? length : all;
        uint8_t *bytes = calloc(1, all < sizeof(struct ebpfMonHead) ? sizeof(struct ebpfMonHead) : all);

        memcpy(bytes, piece, n);
        if (all >= sizeof(struct ebpfMonHead)) { /* kernelEvents.c drops shorter events */
            ((struct ebpfMonHead *)bytes)->kind = kind & 15;
            correct(kind, (struct ebpfMonHead *)bytes, all);
            correctClocks((struct ebpfMonHead *)bytes, all);
            addEvent((struct ebpfMonHead *)bytes, all);
        }
        free(bytes);
    }
    clear();
}
