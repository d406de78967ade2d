/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "common/text.h"
#include "host/syscallName.h"
#include "query/queryFileText.h"
#include "query/queryParser.h"

/* --- what somebody may have meant --- */

/* The nearest known words to a word that query files do not have. No shared state; any thread. */

#define EBPFMON_QUERY_HINT 80

#define WORD_MOST 24 /* longer words are no words of ours */

/* Words of SQL, BPFQL, bpftrace and BCC. */
static const struct { const char *theirs, *ours;
} synonyms[] = {
    {"select", "keys"},      {"group_by", "keys"},    {"groupby", "keys"},   {"by", "keys"},      {"from", "source"},
    {"probe", "source"},     {"filter", "where"},     {"order_by", "sort"},  {"orderby", "sort"}, {"limit", "top"},
    {"hist", "histogram"},   {"lhist", "histogram"},  {"op", "is"},          {"operator", "is"},  {"comm", "thread"},
    {"process", "pid"},      {"user", "author"},      {"caller", "site"},    {"ustack", "site"},  {"retval", "return"},
    {"latency", "duration"}, {"elapsed", "duration"}, {"time", "duration"},  {"path", "file"},    {"peer", "file"},
    {"fd", "file"},          {"lib", "object"},       {"library", "object"}, {"min", "from"},     {"max", "to"},
    {"buckets", "steps"},    {"minutes", "seconds"},
};

/* The number of letters that must be changed, added, left out or exchanged with the next one to make a word of
 * another. */
static unsigned countChanges(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    unsigned char d[WORD_MOST + 1][WORD_MOST + 1];

    if (n > WORD_MOST || m > WORD_MOST)
        return WORD_MOST;
    for (size_t i = 0; i <= n; i++)
        d[i][0] = (unsigned char)i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = (unsigned char)j;
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++) {
            unsigned least = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

            least = d[i - 1][j] + 1u < least ? d[i - 1][j] + 1u : least;
            least = d[i][j - 1] + 1u < least ? d[i][j - 1] + 1u : least;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1u < least)
                least = d[i - 2][j - 2] + 1u;
            d[i][j] = (unsigned char)least;
        }
    return d[n][m];
}

/* Takes the next word out of the list; NULL: there is none. */
static const char *takeWord(const char *list, char word[WORD_MOST + 1])
{
    size_t length;

    list += strspn(list, " ,\"");
    if (!*list)
        return NULL;
    length = strcspn(list, " ,\"");
    snprintf(word, WORD_MOST + 1, "%.*s", (int)length, list);
    return list + length;
}

/* How unlike they are; 0: they mean the same. */
static unsigned compareWords(const char *word, const char *known)
{
    for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
        if (strcmp(synonyms[i].theirs, word) == 0 && strcmp(synonyms[i].ours, known) == 0)
            return 0;
    return countChanges(word, known);
}

/* Writes " Did you mean \"sort\"?", or an empty text: no word of the list is like this one, nor is it the word of
 * another language for one of them. "list": the known words, separated by ", ", with or without quotes. Returns
 * "text". */
static const char *queryHint(const char *word, const char *list, char text[EBPFMON_QUERY_HINT])
{
    unsigned least = strlen(word) > 4 ? 3 : strlen(word) > 2 ? 2 : 1; /* one more than may differ */
    char known[WORD_MOST + 1];

    text[0] = 0;
    while ((list = takeWord(list, known)) != NULL) {
        unsigned unlike = compareWords(word, known);

        if (unlike >= least)
            continue;
        least = unlike;
        snprintf(text, EBPFMON_QUERY_HINT, " Did you mean \"%s\"?", known);
    }
    return text;
}

/* --- words and numbers --- */

/* Reads the smallest parts of a query file: keys, numbers, texts, words. */

int ebpfMonQueryRefuse(ebpfMonQueryParser *p, size_t at, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(p->why, sizeof(p->why), format, args);
    va_end(args);
    p->at = at;
    return -1;
}

/* Nonzero: the word is in a list such as "one, two, three". */
static int isInList(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = strstr(list, word); at && length; at = strstr(at + 1, word))
        if ((at == list || at[-1] == ' ') && (at[length] == ',' || !at[length]))
            return 1;
    return 0;
}

int ebpfMonQueryCheckKeys(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *value, const char *what,
                          const char *known)
{
    char hint[EBPFMON_QUERY_HINT];

    if (value->kind != ebpfMonQueryJsonMap)
        return ebpfMonQueryRefuse(p, value->at, "%s is a map { ... } of these: %s", what, known);
    for (const ebpfMonQueryJsonValue *v = value->first; v; v = v->next)
        if (!isInList(known, v->key))
            return ebpfMonQueryRefuse(p, v->keyAt, "%s cannot have \"%.40s\".%s Known are: %s", what, v->key,
                                      queryHint(v->key, known, hint), known);
    return 0;
}

int ebpfMonQueryReadNumber(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *map, const char *key, double min,
                           double max, double *to)
{
    const ebpfMonQueryJsonValue *v = ebpfMonQueryJsonFind(map, key);

    if (!v)
        return 0;
    if (v->kind != ebpfMonQueryJsonNumber || v->number < min || v->number > max)
        return ebpfMonQueryRefuse(p, v->at, "\"%s\" is a number from %.10g to %.10g", key, min, max);
    *to = v->number;
    return 0;
}

int ebpfMonQueryReadWhole(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *map, const char *key, int64_t min,
                          int64_t max, int64_t *to)
{
    const ebpfMonQueryJsonValue *v = ebpfMonQueryJsonFind(map, key);

    if (!v)
        return 0;
    if (v->kind != ebpfMonQueryJsonNumber || !v->isInteger || v->integer < min || v->integer > max)
        return ebpfMonQueryRefuse(p, v->at, "\"%s\" is a whole number from %lld to %lld", key, (long long)min,
                                  (long long)max);
    *to = v->integer;
    return 0;
}

int ebpfMonQueryReadText(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *map, const char *key, char *to,
                         size_t size)
{
    const ebpfMonQueryJsonValue *v = ebpfMonQueryJsonFind(map, key);

    if (!v)
        return 0;
    if (v->kind != ebpfMonQueryJsonText || !v->length || v->length >= size)
        return ebpfMonQueryRefuse(p, v->at, "\"%s\" is a text of 1 to %u bytes", key, (unsigned)size - 1);
    if (strlen(v->text) != v->length || !ebpfMonTextIsClean(v->text))
        return ebpfMonQueryRefuse(p, v->at, "\"%s\" has a character that cannot be shown. Take it out", key);
    memcpy(to, v->text, v->length + 1);
    return 0;
}

int ebpfMonQueryReadBool(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *map, const char *key, int *to)
{
    const ebpfMonQueryJsonValue *v = ebpfMonQueryJsonFind(map, key);

    if (!v)
        return 0;
    if (v->kind != ebpfMonQueryJsonBool)
        return ebpfMonQueryRefuse(p, v->at, "\"%s\" is true or false", key);
    *to = v->number != 0;
    return 0;
}

int ebpfMonQueryReadWord(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *value, const char *what,
                         const char *const *words, int *number)
{
    char list[200] = "", hint[EBPFMON_QUERY_HINT] = "";

    for (*number = 0; words[*number]; (*number)++) {
        size_t used = strlen(list);

        if (value->kind == ebpfMonQueryJsonText && strcmp(value->text, words[*number]) == 0)
            return 0;
        snprintf(list + used, sizeof(list) - used, "%s\"%s\"", used ? ", " : "", words[*number]);
    }
    if (value->kind == ebpfMonQueryJsonText)
        queryHint(value->text, list, hint);
    return ebpfMonQueryRefuse(p, value->at, "%s is one of %s%s%s", what, list, hint[0] ? "." : "", hint);
}

/* --- where events come from --- */

/* Reads the source of a query: at what it looks. */

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

/* --- which events count --- */

/* Reads the conditions of a query. All conditions of the list must be true. An element {"any": [...]} is true if one
 * condition in it is true. */

/* Adds a condition to a clause: conditions of one clause are joined by "or", the clauses by "and". NULL: the query is
 * refused. */
static struct ebpfMonQueryTerm *addTerm(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v, unsigned clause)
{
    struct ebpfMonQueryPlan *plan = &p->spec->order.plan;

    if (plan->terms == EBPFMON_QUERY_TERMS) {
        ebpfMonQueryRefuse(p, v->at, "there are more than %d conditions (\"thread\" of \"of\" is one). Use two queries",
                           EBPFMON_QUERY_TERMS);
        return NULL;
    }
    plan->term[plan->terms].clause = (uint8_t)clause;
    return &plan->term[plan->terms++];
}

/* The condition compares with a whole text, or ("prefix") with its beginning. */
static int setText(ebpfMonQueryParser *p, struct ebpfMonQueryTerm *t, const ebpfMonQueryJsonValue *v, size_t length,
                   int prefix)
{
    size_t most = t->field.size - 1u;

    if (length > most || (!length && prefix))
        return ebpfMonQueryRefuse(p, v->at, "texts of this field have at most %u bytes. Write 1 to %u", (unsigned)most,
                                  (unsigned)most);
    memset(t->mask, 0, sizeof(t->mask));
    memset(t->mask, 0xff, prefix ? length : length + 1);
    memcpy(t->text, v->text, length);
    return 0;
}

/* The condition compares a CA client with "user@host", or ("prefix") with its beginning. The key has the first
 * bytes of both names only, so longer names are refused. */
static int setWho(ebpfMonQueryParser *p, struct ebpfMonQueryTerm *t, const ebpfMonQueryJsonValue *v, int prefix)
{
    const char *at = strchr(v->text, '@'), *host = at ? at + 1 : "";
    size_t userLen = at ? (size_t)(at - v->text) : strlen(v->text), hostLen = strlen(host);
    struct ebpfMonQueryWho who = { .kind = EBPFMON_QUERY_BY_CA }, mask;

    if ((!at && !prefix) || !userLen || userLen >= sizeof(who.user) || hostLen >= sizeof(who.host))
        return ebpfMonQueryRefuse(p, v->at, "a client is compared with \"user@host\", or by \"begins\" with \"user\": "
                                  "up to %u and %u bytes", (unsigned)sizeof(who.user) - 1,
                                  (unsigned)sizeof(who.host) - 1);
    memset(&mask, 0, sizeof(mask));
    memset(&mask.kind, 0xff, sizeof(mask.kind));
    memcpy(who.user, v->text, userLen);
    memset(mask.user, 0xff, at ? userLen + 1 : userLen);
    memcpy(who.host, host, hostLen);
    memset(mask.host, 0xff, prefix ? hostLen : hostLen + 1);
    memcpy(t->text, &who, sizeof(who));
    memcpy(t->mask, &mask, sizeof(mask));
    return 0;
}

static int refuseSyscall(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    char list[8192] = "", hint[EBPFMON_QUERY_HINT];
    size_t used = 0;

    for (long n = 0; n < EBPFMON_QUERY_SYSCALLS && used + 64 < sizeof(list); n++) {
        ebpfMonSyscallName(n, list + used, 48);
        used += strlen(list + used);
        used += (size_t)snprintf(list + used, sizeof(list) - used, ", ");
    }
    return ebpfMonQueryRefuse(p, v->at, "this machine has no system call \"%.40s\".%s", v->text,
                              queryHint(v->text, list, hint));
}

static int setNumber(ebpfMonQueryParser *p, struct ebpfMonQueryTerm *t, const ebpfMonQueryJsonValue *v)
{
    long number;

    if (v->kind == ebpfMonQueryJsonText && t->field.what == EBPFMON_QUERY_SYSCALL) {
        number = ebpfMonSyscallNumber(v->text);
        if (number < 0)
            return refuseSyscall(p, v);
        t->number = (uint64_t)number;
        return 0;
    }
    if (ebpfMonQueryIsDouble(&t->field)) {
        uint64_t bits;

        if (v->kind != ebpfMonQueryJsonNumber)
            return ebpfMonQueryRefuse(p, v->at, "this field is compared with a number");
        memcpy(&bits, &v->number, sizeof(bits));
        t->number = (uint64_t)ebpfMonQueryDoubleOrder(bits);
        t->field.form = EBPFMON_QUERY_ORDER_OF;
        t->isSigned = 1;
        return 0;
    }
    if (v->kind == ebpfMonQueryJsonBool && t->field.what == EBPFMON_QUERY_PREEMPTED)
        t->number = v->number != 0;
    else if (v->kind != ebpfMonQueryJsonNumber || !v->isInteger)
        return ebpfMonQueryRefuse(p, v->at, "this field is compared with a whole number");
    else
        t->number = (uint64_t)v->integer;
    if (v->kind == ebpfMonQueryJsonNumber && v->integer < 0 && !t->isSigned)
        return ebpfMonQueryRefuse(p, v->at, "this field is never negative. If it can be, give it \"as\": \"int64\"");
    return 0;
}

static int readCondition(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v, unsigned clause)
{
    enum { begins = 6 }; /* index in "compares"; the others are those of enum ebpfMonQueryCompare */
    static const char *const compares[] = {"==", "!=", "<", "<=", ">", ">=", "begins", NULL};
    const ebpfMonQueryJsonValue *field, *is, *value;
    struct ebpfMonQueryTerm *t;
    int compare;

    if (ebpfMonQueryCheckKeys(p, v, "a condition", "field, is, value"))
        return -1;
    field = ebpfMonQueryJsonFind(v, "field");
    is = ebpfMonQueryJsonFind(v, "is");
    value = ebpfMonQueryJsonFind(v, "value");
    if (!field || !is || !value)
        return ebpfMonQueryRefuse(p, v->at, "a condition has \"field\", \"is\" and \"value\"");
    t = addTerm(p, v, clause);
    if (!t || ebpfMonQueryReadField(p, field, &t->field, NULL, 0) ||
        ebpfMonQueryReadWord(p, is, "\"is\"", compares, &compare))
        return -1;
    if (t->field.what == EBPFMON_QUERY_FUNCTION)
        return ebpfMonQueryRefuse(p, field->at, "functions are chosen by \"source\"");
    if (t->field.what == EBPFMON_QUERY_PUT)
        return ebpfMonQueryRefuse(p, field->at, "the kernel cannot compare the name of a put. Use \"put\" in \"keys\"");
    if (ebpfMonQueryIsFile(&t->field))
        return ebpfMonQueryRefuse(p, field->at, "the kernel cannot compare the name of a file or socket. Use it in "
                                  "\"keys\"");
    if (t->field.what == EBPFMON_QUERY_SITE)
        return ebpfMonQueryRefuse(p, field->at,
                                  "the kernel does not know the \"site\" of an event. Use it in \"keys\"");
    if (ebpfMonQueryIsLock(&t->field))
        return ebpfMonQueryRefuse(p, field->at, "the kernel cannot compare the name of a lock. Use it in \"keys\"");
    if (t->field.what == EBPFMON_QUERY_IOC || ebpfMonQueryIsRecord(&t->field))
        return ebpfMonQueryRefuse(p, field->at, "IOCs and records are chosen by \"of\": {\"ioc\": PATTERN, \"record\": "
                                  "PATTERN}");
    t->compare = (uint8_t)compare;
    t->isSigned = (uint8_t)ebpfMonQueryIsSigned(&t->field);
    if (!ebpfMonQueryIsText(&t->field) && !ebpfMonQueryIsWho(&t->field))
        return compare == begins ? ebpfMonQueryRefuse(p, is->at, "\"begins\" is for texts. Compare a number by ==, !=, "
                                                      "<, <=, > or >=") : setNumber(p, t, value);
    if (compare > EBPFMON_QUERY_UNEQUAL && compare != begins)
        return ebpfMonQueryRefuse(p, is->at, "a text is compared by ==, != or begins");
    if (value->kind != ebpfMonQueryJsonText)
        return ebpfMonQueryRefuse(p, value->at, "this field is compared with a text");
    t->compare = compare == EBPFMON_QUERY_UNEQUAL ? EBPFMON_QUERY_TEXT_UNEQUAL : EBPFMON_QUERY_TEXT_EQUAL;
    return ebpfMonQueryIsWho(&t->field) ? setWho(p, t, value, compare == begins)
                                        : setText(p, t, value, value->length, compare == begins);
}

int ebpfMonQueryReadWhere(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *where)
{
    unsigned clause = 0;

    if (where->kind != ebpfMonQueryJsonList)
        return ebpfMonQueryRefuse(p, where->at, "\"where\" is a list [ ... ] of conditions, all of which must be true");
    for (const ebpfMonQueryJsonValue *v = where->first; v; v = v->next, clause++) {
        const ebpfMonQueryJsonValue *any = ebpfMonQueryJsonFind(v, "any");

        if (clause == EBPFMON_QUERY_TERMS)
            return ebpfMonQueryRefuse(p, v->at, "there are more than %d conditions. Use two queries",
                                      EBPFMON_QUERY_TERMS);
        if (!any) {
            if (readCondition(p, v, clause))
                return -1;
            continue;
        }
        if (ebpfMonQueryCheckKeys(p, v, "this condition", "any"))
            return -1;
        if (any->kind != ebpfMonQueryJsonList || !any->count)
            return ebpfMonQueryRefuse(p, any->at, "\"any\" is a list of conditions, one of which must be true");
        for (const ebpfMonQueryJsonValue *one = any->first; one; one = one->next)
            if (readCondition(p, one, clause))
                return -1;
    }
    return 0;
}

int ebpfMonQueryReadThread(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *v)
{
    size_t length = v->kind == ebpfMonQueryJsonText ? strlen(v->text) : 0;
    int prefix = length && v->text[length - 1] == '*';
    struct ebpfMonQueryTerm *t;

    if (!length || length != v->length)
        return ebpfMonQueryRefuse(p, v->at, "\"thread\" is the name of a thread, or the begin of a name and a *, such "
                                  "as \"scan-*\"");
    length -= (size_t)prefix;
    if (prefix && !length)
        return 0;
    if (memchr(v->text, '*', length) || strchr(v->text, '?'))
        return ebpfMonQueryRefuse(p, v->at, "a pattern of threads may have one *, at its end. The kernel cannot "
                                  "compare other patterns");
    t = addTerm(p, v, EBPFMON_QUERY_TERMS);
    if (!t)
        return -1;
    t->field.what = EBPFMON_QUERY_THREAD;
    t->field.size = 16;
    t->compare = EBPFMON_QUERY_TEXT_EQUAL;
    return setText(p, t, v, length, prefix);
}

/* Nonzero: this is known only at the end of a call. */
static int isKnownAtEnd(const struct ebpfMonQueryPlan *plan, const struct ebpfMonQueryTerm *t)
{
    return t->field.what == EBPFMON_QUERY_RETURN || t->field.what == EBPFMON_QUERY_DURATION ||
           (plan->lateOrigin && (t->field.what == EBPFMON_QUERY_PUT || t->field.what == EBPFMON_QUERY_AUTHOR));
}

void ebpfMonQueryOrderTerms(struct ebpfMonQueryPlan *plan)
{
    struct ebpfMonQueryTerm *t = plan->term;

    for (unsigned i = 1; i < plan->terms; i++)
        for (unsigned n = i; n && t[n].clause == t[n - 1].clause && isKnownAtEnd(plan, &t[n - 1]) &&
                 !isKnownAtEnd(plan, &t[n]); n--) {
            struct ebpfMonQueryTerm other = t[n];

            t[n] = t[n - 1];
            t[n - 1] = other;
        }
    for (unsigned i = 0; i < plan->terms; i++)
        t[i].isLast = i + 1 == plan->terms || t[i + 1].clause != t[i].clause;
}

/* --- keys and values --- */

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
        p->spec->order.needsChains |= field->what == EBPFMON_QUERY_ROOT || field->what == EBPFMON_QUERY_PUT ||
                                      field->what == EBPFMON_QUERY_AUTHOR;
        if (field->what == EBPFMON_QUERY_FILE) {
            p->spec->order.plan.args |= 1;
            ebpfMonQueryFindFileCalls((uint64_t *)p->spec->order.plan.takesFile);
        }
        field->type = field->what == EBPFMON_QUERY_RETURN ? EBPFMON_QUERY_S64 : EBPFMON_QUERY_U64;
        return 0;
    }
    return ebpfMonQueryRefuse(p, v->at, "there is no field \"%.40s\".%s Known are: %s", v->text,
                              queryHint(v->text, FIELDS, hint), FIELDS);
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
