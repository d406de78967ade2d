/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the fields of a query. queryParseSource.c reads its source, queryParseWhere.c its conditions. */
#include <stdio.h>
#include <string.h>

#include "query/queryFileText.h"
#include "query/queryHint.h"
#include "query/queryParser.h"

#define BIT(source) (1u << ebpfMonQuery##source)
#define ANY         (~0u)
#define WITH_ARGS   (BIT(AtEntry) | BIT(Call) | BIT(Usdt) | BIT(Syscall) | BIT(SyscallCall) | BIT(Tracepoint))
#define MEASURED    (BIT(Call) | BIT(SyscallCall) | BIT(CpuWait))
#define RETURNING   (BIT(AtReturn) | BIT(Call) | BIT(SyscallCall))

/* The fields that are words, their sizes in bytes, and the sources that have them. */
static const struct {
    const char *name;
    enum ebpfMonQueryWhat what;
    unsigned size, sources;
} fields[] = {
    { "ioc",       EBPFMON_QUERY_IOC,       8,  ANY },
    { "thread",    EBPFMON_QUERY_THREAD,    16, ANY },
    { "root",      EBPFMON_QUERY_ROOT,      16, ANY },
    { "record",    EBPFMON_QUERY_IN_HAND,   16, ANY },
    { "cpu",       EBPFMON_QUERY_CPU,       8,  ANY },
    { "pid",       EBPFMON_QUERY_PID,       8,  ANY },
    { "tid",       EBPFMON_QUERY_TID,       8,  ANY },
    { "return",    EBPFMON_QUERY_RETURN,    8,  RETURNING },
    { "duration",  EBPFMON_QUERY_DURATION,  8,  MEASURED },
    { "syscall",   EBPFMON_QUERY_SYSCALL,   8,  BIT(Syscall) | BIT(SyscallCall) },
    { "preempted", EBPFMON_QUERY_PREEMPTED, 8,  BIT(CpuWait) },
    { "before",    EBPFMON_QUERY_BEFORE,    16, BIT(CpuWait) },
    { "function",  EBPFMON_QUERY_FUNCTION,  16, BIT(AtEntry) | BIT(Call) | BIT(Usdt) },
    { "file",      EBPFMON_QUERY_FILE,      EBPFMON_QUERY_TEXT, BIT(Syscall) | BIT(SyscallCall) },
    { "put",       EBPFMON_QUERY_PUT,       24, ANY },
    { "author",    EBPFMON_QUERY_AUTHOR,    EBPFMON_QUERY_TEXT, ANY },
    { "client",    EBPFMON_QUERY_CLIENT,    EBPFMON_QUERY_TEXT, ~BIT(CpuWait) }, /* needs the IOC's memory */
    { "site",      EBPFMON_QUERY_SITE,      8,  ~BIT(CpuWait) }, /* needs the stack */
};

#define FIELDS "\"ioc\", \"thread\", \"root\", \"record\", \"cpu\", \"pid\", \"tid\", \"return\", \"duration\", " \
               "\"syscall\", \"preempted\", \"before\", \"function\", \"file\", \"put\", \"author\", \"client\", " \
               "\"site\", " \
               "{\"arg\": N, \"at\": [OFFSET, ...], \"as\": TYPE} or {\"return\": TYPE}"

/* In the order of enum ebpfMonQueryType. */
static const char *const types[] = {"uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
                                    "float", "double", "text", "record", "socket",
                                    "lock", "client", NULL};

/* In the order of ebpfMonQuerySource. */
static const char *const sourceNames[] = {
    "\"function\"",
    "a function with \"when\": \"return\"",
    "a function with \"when\": \"duration\"",
    "\"usdt\"",
    "\"syscalls\": \"entry\"",
    "\"syscalls\": \"duration\"",
    "\"profile\"",
    "\"event\"",
    "\"tracepoint\"",
    "\"cpuWait\"",
};

/* Refuses a field that this source has not, and names the sources that have it. */
static int refuseOfSource(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v, const char *what, unsigned sources)
{
    char list[300] = "";

    for (size_t i = 0; i < sizeof(sourceNames) / sizeof(sourceNames[0]); i++) {
        size_t used = strlen(list);

        if (sources >> i & 1)
            snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "", sourceNames[i]);
    }
    return ebpfMonQueryRefuse(p, v->at, "this source %s. These have: %s", what, list);
}

static int readWordField(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v, struct ebpfMonQueryField *field)
{
    char what[40], hint[EBPFMON_QUERY_HINT];

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (strcmp(fields[i].name, v->text) != 0)
            continue;
        if (!(fields[i].sources >> p->spec->order.source & 1)) {
            snprintf(what, sizeof(what), "has no \"%s\"", fields[i].name);
            return refuseOfSource(p, v, what, fields[i].sources);
        }
        field->what = fields[i].what;
        field->size = (uint8_t)fields[i].size;
        p->spec->order.needsRecord |= field->what == EBPFMON_QUERY_IN_HAND;
        if (field->what == EBPFMON_QUERY_FILE) {
            p->spec->order.plan.args |= 1;
            ebpfMonQueryFindFileCalls((uint64_t *)p->spec->order.plan.takesFile);
        }
        field->type = field->what == EBPFMON_QUERY_RETURN ? EBPFMON_QUERY_S64 : EBPFMON_QUERY_U64;
        return 0;
    }
    return ebpfMonQueryRefuse(p, v->at, "there is no field \"%.40s\".%s Known are: %s", v->text,
                              ebpfMonQueryHint(v->text, FIELDS, hint), FIELDS);
}

static int readSteps(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v, struct ebpfMonQueryField *field)
{
    if (v->kind != ebpfMonQueryJsonList || !v->count || v->count > EBPFMON_QUERY_STEPS)
        return ebpfMonQueryRefuse(p, v->at, "\"at\" is a list of 1 to %d offsets in bytes. [40, 8]: the argument "
                                  "points to a struct; at its byte 40 is a pointer to another struct; the value is at "
                                  "byte 8 of it", EBPFMON_QUERY_STEPS);
    for (const ebpfMonQueryJsonValue *o = v->first; o; o = o->next) {
        if (o->kind != ebpfMonQueryJsonNumber || !o->isInteger || o->integer < -65536 || o->integer > 16777216)
            return ebpfMonQueryRefuse(p, o->at, "an offset is a whole number of bytes from -65536 to 16777216");
        field->offset[field->steps++] = (int32_t)o->integer;
    }
    return 0;
}

static int readArg(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v, struct ebpfMonQueryField *field)
{
    const ebpfMonQueryJsonValue *at = ebpfMonQueryJsonFind(v, "at"), *as = ebpfMonQueryJsonFind(v, "as");
    ebpfMonQuerySource source = p->spec->order.source;
    int64_t most = source == ebpfMonQueryTracepoint ? 3 : source <= ebpfMonQueryCall ? 4 : EBPFMON_QUERY_ARGS, arg = 0;
    int type = EBPFMON_QUERY_S64;

    if (!(WITH_ARGS >> source & 1))
        return refuseOfSource(p, v, "has no arguments", WITH_ARGS);
    if (ebpfMonQueryCheckKeys(p, v, "an argument", "arg, at, as") ||
        ebpfMonQueryReadWhole(p, v, "arg", 1, most, &arg) || (at && readSteps(p, at, field)) ||
        (as && ebpfMonQueryReadWord(p, as, "\"as\"", types, &type)))
        return -1;
    if (source == ebpfMonQueryTracepoint && (at || type == EBPFMON_QUERY_CHARS || type == EBPFMON_QUERY_RECORD ||
                                             type == EBPFMON_QUERY_LOCK || type == EBPFMON_QUERY_CA_CLIENT))
        return ebpfMonQueryRefuse(p, v->at, "an argument of a tracepoint is a number, or a socket: leave out \"at\", "
                                  "and \"as\" \"text\", \"record\", \"lock\" or \"client\"");
    if (source != ebpfMonQueryTracepoint && type == EBPFMON_QUERY_SOCKET)
        return ebpfMonQueryRefuse(p, as->at, "only an argument of a tracepoint can be a \"socket\". For a system call "
                                  "use the field \"file\"");
    if ((type == EBPFMON_QUERY_F32 || type == EBPFMON_QUERY_F64) && !at)
        return ebpfMonQueryRefuse(p, as->at, "eBPF cannot read the register of an argument that is a float or double. "
                                  "It can read one to which an argument points: use \"at\"");
    field->what = EBPFMON_QUERY_ARG;
    field->arg = (uint8_t)(arg - 1);
    field->type = (uint8_t)type;
    if (type == EBPFMON_QUERY_CA_CLIENT && source > ebpfMonQueryUsdt)
        return ebpfMonQueryRefuse(p, as->at,
                                  "only an argument of a function can be a \"client\" of the CA server. For the client "
                                  "that the thread serves use the field \"client\"");
    field->size = type == EBPFMON_QUERY_CHARS || type == EBPFMON_QUERY_SOCKET || type == EBPFMON_QUERY_CA_CLIENT ?
                      EBPFMON_QUERY_TEXT :
                  type == EBPFMON_QUERY_RECORD || type == EBPFMON_QUERY_LOCK ? 16 :
                                                                               8;
    p->spec->function.args |= 1u << field->arg;
    p->spec->order.plan.args |= 1u << field->arg;
    return 0;
}

int ebpfMonQueryReadField(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v, struct ebpfMonQueryField *field,
                          char *name, size_t size)
{
    const ebpfMonQueryJsonValue *returned = ebpfMonQueryJsonFind(v, "return");
    int type;

    memset(field, 0, sizeof(*field));
    if (name)
        snprintf(name, size, "%s", v->kind == ebpfMonQueryJsonText ? v->text : "return");
    if (v->kind == ebpfMonQueryJsonText)
        return readWordField(p, v, field);
    if (ebpfMonQueryJsonFind(v, "arg")) {
        if (readArg(p, v, field))
            return -1;
        if (name)
            snprintf(name, size,
                     field->type == EBPFMON_QUERY_RECORD    ? "record" :
                     field->type == EBPFMON_QUERY_SOCKET    ? "socket" :
                     field->type == EBPFMON_QUERY_LOCK      ? "lock" :
                     field->type == EBPFMON_QUERY_CA_CLIENT ? "client" :
                                                              "arg%d",
                     field->arg + 1);
        return 0;
    }
    if (!returned)
        return ebpfMonQueryRefuse(p, v->at, "a field is one of %s", FIELDS);
    if (!(RETURNING >> p->spec->order.source & 1))
        return refuseOfSource(p, v, "returns nothing", RETURNING);
    if (ebpfMonQueryCheckKeys(p, v, "a return value", "return") ||
        ebpfMonQueryReadWord(p, returned, "\"return\"", types, &type))
        return -1;
    if (type > EBPFMON_QUERY_S64)
        return ebpfMonQueryRefuse(p, returned->at, "a return value can be a number only: int8 to uint64");
    field->what = EBPFMON_QUERY_RETURN;
    field->type = (uint8_t)type;
    field->size = 8;
    return 0;
}
