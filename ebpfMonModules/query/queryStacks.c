/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "code/stack.h"
#include "common/array.h"
#include "common/clock.h"
#include "common/text.h"
#include "query/queryStacks.h"

/* --- the kernel's names --- */

/* Names of the kernel's functions, from /proc/kallsyms: some 7 MB. One thread at a time. */

typedef struct ebpfMonKernelNames ebpfMonKernelNames;

typedef struct {
    uint64_t address;
    size_t   name; /* where it begins in "text" */
} Function;

struct ebpfMonKernelNames {
    Function *function; /* by address */
    size_t    count, room;
    char     *text;
    size_t    used, textRoom;
};

static int compareAddresses(const void *a, const void *b)
{
    uint64_t x = ((const Function *)a)->address, y = ((const Function *)b)->address;

    return (x > y) - (x < y);
}

/* 0, or -1: no memory. */
static int addFunction(ebpfMonKernelNames *n, uint64_t address, const char *name)
{
    size_t size = strlen(name) + 1;

    if (ebpfMonArrayGrow(&n->function, &n->room, n->count + 1, 1 << 16, sizeof(*n->function)) ||
        ebpfMonArrayGrow(&n->text, &n->textRoom, n->used + size, 1 << 20, 1))
        return -1;
    n->function[n->count++] = (Function){ address, n->used };
    memcpy(n->text + n->used, name, size);
    n->used += size;
    return 0;
}

static void freeKernelNames(ebpfMonKernelNames *n)
{
    if (!n)
        return;
    free(n->function);
    free(n->text);
    free(n);
}

static ebpfMonKernelNames *readKernelNames(void)
{
    ebpfMonKernelNames *n = calloc(1, sizeof(*n));
    FILE *f = n ? fopen("/proc/kallsyms", "re") : NULL;
    char line[512], name[256], type;
    uint64_t address;

    while (f && fgets(line, sizeof(line), f))
        /* without CAP_SYSLOG all addresses are 0 */
        if (sscanf(line, "%" SCNx64 " %c %255s", &address, &type, name) == 3 && address && strchr("tTwW", type) &&
            addFunction(n, address, name))
            break;
    if (f)
        fclose(f);
    if (n && n->count) {
        qsort(n->function, n->count, sizeof(*n->function), compareAddresses);
        return n;
    }
    freeKernelNames(n);
    return NULL;
}

/* The function that an address lies in; "kernel": not known. */
static const char *findKernelNames(const ebpfMonKernelNames *n, uint64_t address)
{
    size_t low = 0, high = n ? n->count : 0;

    while (low < high) { /* the first one behind it */
        size_t middle = low + (high - low) / 2;

        if (n->function[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? n->text + n->function[low - 1].name : "kernel";
}

/* --- stacks --- */

_Static_assert(sizeof(((ebpfMonStackCopy *)0)->ret) == sizeof(((struct ebpfMonQueryEvent *)0)->ret) &&
               EBPFMON_FOLD_REGS == EBPFMON_QUERY_REGS, "an event is copied as it is");

#define LINES_MAX 4096
#define IOCS_MAX  256
#define FRONT     320 /* bytes of a line before its functions: IOC, thread, keys */
#define LINE      (FRONT + EBPFMON_FOLD_TEXT + 1024)
#define OWN_MAX   8   /* functions of the kernel from a tracepoint to the program that notes the stack */

/* The stacks of one process that are not lines yet. */
typedef struct {
    uint32_t tgid, iocId;
    ebpfMonStackFold *fold;
    struct {
        char     front[FRONT];
        uint32_t kernelCount;
        uint64_t kernel[EBPFMON_QUERY_KERNEL];
        uint64_t key[EBPFMON_QUERY_KEY_SIZE / 8];
        uint64_t at;
        int64_t  value;
    } waiting[EBPFMON_FOLD_BATCH];
    unsigned count;
    uint64_t usedAt; /* the number of the last stack that was added */
} Batch;

typedef struct {
    char    *text;
    uint64_t count;
} Line;

struct ebpfMonQueryStacks {
    const ebpfMonQuerySpec *spec;
    const ebpfMonQueryNames *names;
    ebpfMonQuerySites *sites; /* NULL: the query has no such key */
    ebpfMonKernelNames *kernel;
    int      hasReadKernel;
    Batch   *batch[IOCS_MAX];
    unsigned batches;
    Line    *line; /* sorted by text */
    size_t   lines, room;
    uint64_t added, missing; /* stacks, and those that were left out */
};

ebpfMonQueryStacks *ebpfMonQueryStacksNew(const ebpfMonQuerySpec *spec, const ebpfMonQueryNames *names,
                                          ebpfMonQuerySites *sites)
{
    ebpfMonQueryStacks *s = calloc(1, sizeof(*s));

    if (s) {
        s->spec = spec;
        s->names = names;
        s->sites = sites;
    }
    return s;
}

void ebpfMonQueryStacksFree(ebpfMonQueryStacks *s)
{
    if (!s)
        return;
    for (unsigned i = 0; i < s->batches; i++) {
        ebpfMonStackFoldFree(s->batch[i]->fold);
        free(s->batch[i]);
    }
    for (size_t i = 0; i < s->lines; i++)
        free(s->line[i].text);
    free(s->line);
    freeKernelNames(s->kernel);
    free(s);
}

static void addLine(ebpfMonQueryStacks *s, const char *text)
{
    size_t low = 0, high = s->lines;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(s->line[middle].text, text);

        if (!order) {
            s->line[middle].count++;
            return;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    char *copy = s->lines < LINES_MAX ? strdup(text) : NULL;

    if (!copy || ebpfMonArrayGrow(&s->line, &s->room, s->lines + 1, 64, sizeof(*s->line))) {
        free(copy);
        s->missing++;
        return;
    }
    memmove(&s->line[low + 1], &s->line[low], (s->lines - low) * sizeof(*s->line));
    s->line[low] = (Line){ copy, 1 };
    s->lines++;
}

/* How many of the innermost functions are those by which a tracepoint has called our program, and the program itself.
 * They depend on who else uses this tracepoint (DEFINE_STATIC_CALL of include/linux/tracepoint.h). */
static uint32_t countOwn(const ebpfMonKernelNames *names, const uint64_t *address, uint32_t count)
{
    static const char *const front[] = { "bpf_trace_run", "__bpf_trace_", "__traceiter_" };
    uint32_t own = 0;

    for (uint32_t i = 0; i < count && i < OWN_MAX; i++)
        for (size_t f = 0; f < sizeof(front) / sizeof(front[0]); f++)
            if (strncmp(findKernelNames(names, address[i]), front[f], strlen(front[f])) == 0)
                own = i + 1;
    return own;
}

/* Adds the functions of the kernel behind those of the program, with the mark _[k] of stackcollapse-perf.pl. */
static void addKernel(ebpfMonQueryStacks *s, const uint64_t *address, uint32_t count, char *line, size_t size)
{
    if (count && !s->hasReadKernel) {
        s->kernel = readKernelNames();
        s->hasReadKernel = 1;
    }
    if (count > EBPFMON_QUERY_KERNEL)
        count = EBPFMON_QUERY_KERNEL;
    for (uint32_t i = count, own = countOwn(s->kernel, address, count); i-- > own;) {
        size_t used = strlen(line);

        snprintf(line + used, size - used, ";%s_[k]", findKernelNames(s->kernel, address[i]));
    }
}

static void countSite(ebpfMonQueryStacks *s, const Batch *b, unsigned n)
{
    const char *site = b->fold ? ebpfMonStackFoldGetSite(b->fold, n) : "";

    if (s->sites && ebpfMonQuerySitesAdd(s->sites, b->waiting[n].key, site[0] ? site : "[unknown]", b->waiting[n].value,
                                         b->waiting[n].at))
        s->missing++;
}

static void flushBatch(ebpfMonQueryStacks *s, Batch *b)
{
    char line[LINE];

    if (!b->count)
        return;
    b->fold = ebpfMonStackFoldRun(b->fold);
    for (unsigned i = 0; i < b->count; i++) {
        const char *functions = b->fold ? ebpfMonStackFoldGet(b->fold, i) : "";

        snprintf(line, sizeof(line), "%s;%s", b->waiting[i].front, functions[0] ? functions : "[unknown]");
        addKernel(s, b->waiting[i].kernel, b->waiting[i].kernelCount, line, sizeof(line));
        addLine(s, line);
        countSite(s, b, i);
    }
    b->count = 0;
    if (b->fold)
        ebpfMonStackFoldBegin(b->fold);
}

/* Returns a batch for one more process. If there are as many as there may be, it is that of the process which was not
 * seen for longest, and most likely has ended. NULL: no memory. */
static Batch *takeBatch(ebpfMonQueryStacks *s)
{
    Batch *b = s->batches < IOCS_MAX ? calloc(1, sizeof(*b)) : s->batch[0];

    if (s->batches < IOCS_MAX) {
        if (b)
            s->batch[s->batches++] = b;
        return b;
    }
    for (unsigned i = 1; i < s->batches; i++)
        if (s->batch[i]->usedAt < b->usedAt)
            b = s->batch[i];
    flushBatch(s, b);
    ebpfMonStackFoldFree(b->fold);
    memset(b, 0, sizeof(*b));
    return b;
}

static Batch *findBatch(ebpfMonQueryStacks *s, const struct ebpfMonQueryEvent *ev)
{
    Batch *b = NULL;

    for (unsigned i = 0; i < s->batches; i++)
        if (s->batch[i]->tgid == ev->tgid && s->batch[i]->iocId == ev->iocId)
            b = s->batch[i];
    if (!b)
        b = takeBatch(s);
    if (!b)
        return NULL;
    b->tgid = ev->tgid;
    b->iocId = ev->iocId;
    b->usedAt = ++s->added;
    if (!b->fold)
        b->fold = ebpfMonStackFoldNew((pid_t)ev->tgid);
    return b->fold ? b : NULL;
}

/* Adds a part to a line. A ';' separates the parts, so a ';' in a part becomes ':'. */
static void addPart(char *front, const char *text)
{
    size_t used = strlen(front), from = used;

    snprintf(front + used, FRONT - used, "%s%s", used ? ";" : "", text);
    for (char *c = front + from + (from ? 1 : 0); *c; c++)
        if (*c == ';')
            *c = ':';
}

static void writeFront(const ebpfMonQueryStacks *s, const struct ebpfMonQueryEvent *ev, char *front)
{
    static const struct ebpfMonQueryField ioc = { .what = EBPFMON_QUERY_IOC, .size = 8 };
    const struct ebpfMonQueryPlan *plan = &s->spec->order.plan;
    char text[EBPFMON_QUERY_CELL_SIZE];
    uint64_t id = ev->iocId;

    front[0] = 0;
    ebpfMonQueryKeyText(&ioc, (const uint8_t *)&id, s->names, 0, text, sizeof(text));
    addPart(front, text);
    ebpfMonTextCopyBytes(text, sizeof(text), ev->comm, sizeof(ev->comm));
    addPart(front, text);
    for (unsigned i = 0; i < plan->keys; i++) {
        if (plan->key[i].what == EBPFMON_QUERY_IOC || plan->key[i].what == EBPFMON_QUERY_THREAD ||
            plan->key[i].what == EBPFMON_QUERY_SITE)
            continue;
        ebpfMonQueryKeyText(&plan->key[i], (const uint8_t *)ev->key + plan->key[i].at, s->names,
                            ebpfMonClockSeconds(), text, sizeof(text));
        addPart(front, text);
    }
}

void ebpfMonQueryStacksAdd(ebpfMonQueryStacks *s, const struct ebpfMonQueryEvent *ev)
{
    Batch *b = findBatch(s, ev);
    ebpfMonStackCopy copy = { .returns = ev->returns, .stack = ev->stack };

    copy.bytes = ev->stackBytes < EBPFMON_QUERY_STACK ? ev->stackBytes : EBPFMON_QUERY_STACK;
    memcpy(copy.regs, ev->regs, sizeof(copy.regs));
    memcpy(copy.ret, ev->ret, sizeof(copy.ret));
    if (b && b->count == EBPFMON_FOLD_BATCH) {
        flushBatch(s, b);
        b = findBatch(s, ev);
    }
    if (!b || ebpfMonStackFoldAdd(b->fold, &copy)) {
        s->missing++;
        return;
    }
    writeFront(s, ev, b->waiting[b->count].front);
    b->waiting[b->count].kernelCount = ev->kernelCount;
    memcpy(b->waiting[b->count].kernel, ev->kernel, sizeof(ev->kernel));
    memcpy(b->waiting[b->count].key, ev->key, sizeof(ev->key));
    b->waiting[b->count].at = ev->at;
    b->waiting[b->count].value = ev->value;
    b->count++;
}

uint64_t ebpfMonQueryStacksFinish(ebpfMonQueryStacks *s)
{
    for (unsigned i = 0; i < s->batches; i++)
        flushBatch(s, s->batch[i]);
    return s->missing;
}

char *ebpfMonQueryStacksGetText(const ebpfMonQueryStacks *s)
{
    size_t size = 1, used = 0;
    char *text;

    for (size_t i = 0; i < s->lines; i++)
        size += strlen(s->line[i].text) + 24;
    text = malloc(size);
    if (text)
        text[0] = 0;
    for (size_t i = 0; text && i < s->lines; i++)
        used += (size_t)snprintf(text + used, size - used, "%s %" PRIu64 "\n", s->line[i].text, s->line[i].count);
    return text;
}
