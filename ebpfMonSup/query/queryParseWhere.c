/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the conditions of a query. All conditions of the list must be true. An element {"any": [...]} is true if one
 * condition in it is true. */
#include <stdio.h>
#include <string.h>

#include "host/syscallName.h"
#include "query/queryHint.h"
#include "query/queryParser.h"

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
                              ebpfMonQueryHint(v->text, list, hint));
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
