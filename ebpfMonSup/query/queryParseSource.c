/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the source of a query: at what it looks. */
#include <string.h>

#include "query/queryParser.h"

static int readFunction(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    static const char *const places[] = {"entry", "return", "duration", NULL}; /* in the order of ebpfMonQuerySource */
    ebpfMonFunctionWanted *f = &p->spec->function;
    const ebpfMonQueryJsonValue *when = ebpfMonQueryJsonFind(v, "when"), *offset = ebpfMonQueryJsonFind(v, "offset");
    int place = ebpfMonQueryAtEntry;
    int64_t at = 0;

    strcpy(f->object, "*");
    if (ebpfMonQueryCheckKeys(p, v, "a source that is a function", "function, object, offset, when") ||
        ebpfMonQueryReadText(p, v, "function", f->symbol, sizeof(f->symbol)) ||
        ebpfMonQueryReadText(p, v, "object", f->object, sizeof(f->object)) ||
        ebpfMonQueryReadWhole(p, v, "offset", 0, INT32_MAX, &at) ||
        (when && ebpfMonQueryReadWord(p, when, "\"when\"", places, &place)))
        return -1;
    if (!f->symbol[0] && (!offset || !ebpfMonQueryJsonFind(v, "object")))
        return ebpfMonQueryRefuse(p, v->at, "a source without \"function\" needs \"object\" and \"offset\": a file, "
                                  "and the offset in it");
    if (offset && ebpfMonFunctionIsPattern(f->symbol))
        return ebpfMonQueryRefuse(p, offset->at, "\"offset\" is possible in one function only, not with a pattern of "
                                  "functions");
    if (at && place != ebpfMonQueryAtEntry)
        return ebpfMonQueryRefuse(p, when->at, "with \"offset\" only \"when\": \"entry\" is possible");
    f->offset = (uint64_t)at;
    f->needReturn = place != ebpfMonQueryAtEntry;
    p->spec->order.source = (ebpfMonQuerySource)place;
    return 0;
}

static int readUsdt(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    ebpfMonFunctionWanted *f = &p->spec->function;
    const char *colon;

    strcpy(f->object, "*");
    if (ebpfMonQueryCheckKeys(p, v, "a source that is a USDT probe", "usdt, object") ||
        ebpfMonQueryReadText(p, v, "usdt", f->symbol, sizeof(f->symbol)) ||
        ebpfMonQueryReadText(p, v, "object", f->object, sizeof(f->object)))
        return -1;
    colon = strchr(f->symbol, ':');
    if (!colon || colon == f->symbol || !colon[1] || strchr(colon + 1, ':'))
        return ebpfMonQueryRefuse(p, ebpfMonQueryJsonFind(v, "usdt")->at, "\"usdt\" is \"PROVIDER:NAME\", such as "
                                  "\"libc:setjmp\". readelf -n FILE lists the USDT probes of a file");
    f->isUsdt = 1;
    p->spec->order.source = ebpfMonQueryUsdt;
    return 0;
}

static int readSyscallSource(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    static const char *const places[] = {"entry", "duration", NULL};
    int place;

    if (ebpfMonQueryCheckKeys(p, v, "this source", "syscalls") ||
        ebpfMonQueryReadWord(p, v->first, "\"syscalls\"", places, &place))
        return -1;
    p->spec->order.source = place ? ebpfMonQuerySyscallCall : ebpfMonQuerySyscall;
    return 0;
}

static int readProfile(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    int64_t rate = 0;

    if (ebpfMonQueryCheckKeys(p, v, "this source", "profile") ||
        ebpfMonQueryReadWhole(p, v, "profile", 1, 1000, &rate))
        return -1;
    p->spec->order.source = ebpfMonQueryProfile;
    p->spec->order.rate = (unsigned)rate;
    return 0;
}

static int readEvent(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    char name[32] = "";

    if (ebpfMonQueryCheckKeys(p, v, "this source", "event") || ebpfMonQueryReadText(p, v, "event", name, sizeof(name)))
        return -1;
    p->spec->order.source = ebpfMonQueryEvent;
    p->spec->order.event = ebpfMonPerfEventFind(name);
    return p->spec->order.event ? 0 :
        ebpfMonQueryRefuse(p, v->first->at, "there is no event \"%s\". Known are: %s", name, ebpfMonPerfEventNames());
}

static int readTracepoint(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    p->spec->order.source = ebpfMonQueryTracepoint;
    return ebpfMonQueryCheckKeys(p, v, "this source", "tracepoint") ||
           ebpfMonQueryReadText(p, v, "tracepoint", p->spec->order.tracepoint,
                                sizeof(p->spec->order.tracepoint)) ? -1 : 0;
}

static int readCpuWait(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    int on = 0;

    p->spec->order.source = ebpfMonQueryCpuWait;
    if (ebpfMonQueryCheckKeys(p, v, "this source", "cpuWait"))
        return -1;
    on = v->first->kind == ebpfMonQueryJsonBool && v->first->number != 0;
    return on ? 0 : ebpfMonQueryRefuse(p, v->first->at, "\"cpuWait\" can only be true");
}

/* What to write instead of the probes of other tools; empty: it is none of them. */
static const char *adviseSource(const ebpfMonQueryJsonValue *v)
{
    static const char *const ofKernel[] = { "kprobe", "kretprobe", "fentry", "fexit", "kfunc", "kretfunc" };
    const char *key = v->kind == ebpfMonQueryJsonMap && v->first ? v->first->key : "";

    for (size_t i = 0; i < sizeof(ofKernel) / sizeof(ofKernel[0]); i++)
        if (strcmp(key, ofKernel[i]) == 0)
            return "functions of the kernel cannot be probed: look for a \"tracepoint\", or at \"syscalls\"; ";
    if (strcmp(key, "uprobe") == 0 || strcmp(key, "uretprobe") == 0)
        return "write \"function\" for a uprobe, with \"when\": \"return\" for its return; ";
    return "";
}

int ebpfMonQueryReadSource(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    static const struct {
        const char *key;
        int (*read)(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v);
    } sources[] = {
        { "function", readFunction }, { "usdt", readUsdt }, { "offset", readFunction },
        { "syscalls", readSyscallSource }, { "profile", readProfile }, { "event", readEvent },
        { "tracepoint", readTracepoint }, { "cpuWait", readCpuWait },
    };

    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
        if (ebpfMonQueryJsonFind(v, sources[i].key))
            return sources[i].read(p, v);
    return ebpfMonQueryRefuse(p, v->at, "%sa source is one of {\"function\": NAME, \"object\": PATTERN, \"when\": "
                              "\"entry\", \"return\" or \"duration\"}, {\"usdt\": \"PROVIDER:NAME\"}, {\"syscalls\": "
                              "\"entry\" or \"duration\"}, {\"profile\": HZ}, {\"event\": \"page-faults\"}, "
                              "{\"tracepoint\": NAME}, {\"cpuWait\": true}", adviseSource(v));
}
