/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is a file of queries. If the parser accepts it, it must keep the limits that the kernel part relies on. */
#include "common/text.h"
#include "fuzz.h"
#include "query/queryPrograms.h"
#include "query/querySpec.h"

/* Replaces the function of probe/, which asks libbpf for the number of CPUs. */
void ebpfMonQuerySizesCount(const ebpfMonQueryOrder *order, ebpfMonQuerySizes *sizes)
{
    sizes->bytes = order->maxKeys * (order->plan.hist ? 3300u : 240u) + (order->needsRecord ? 4u << 20 : 0u);
}

static void checkField(const struct ebpfMonQueryField *f)
{
    FUZZ_CHECK(f->arg < EBPFMON_QUERY_ARGS && f->steps <= EBPFMON_QUERY_STEPS && f->type <= EBPFMON_QUERY_LOCK);
    FUZZ_CHECK(f->what <= EBPFMON_QUERY_SITE && f->size <= EBPFMON_QUERY_TEXT && f->size % 8 == 0);
}

static void checkSpec(const ebpfMonQuerySpec *s)
{
    const struct ebpfMonQueryPlan *plan = &s->order.plan;
    unsigned end = 0;

    FUZZ_CHECK(s->name[0] && ebpfMonTextIsClean(s->name) && ebpfMonTextIsClean(s->title) &&
               ebpfMonTextIsClean(s->unit));
    FUZZ_CHECK(plan->keys <= EBPFMON_QUERY_KEYS && plan->terms <= EBPFMON_QUERY_TERMS && plan->sample >= 1);
    for (unsigned i = 0; i < plan->keys; i++) {
        checkField(&plan->key[i]);
        FUZZ_CHECK(plan->key[i].size && plan->key[i].at == end);
        end += plan->key[i].size;
    }
    FUZZ_CHECK(end + (plan->perPut ? 8 : 0) <= EBPFMON_QUERY_KEY_SIZE && !s->perPut == !plan->perPut);
    for (unsigned i = 0; i < plan->terms; i++) {
        checkField(&plan->term[i].field);
        FUZZ_CHECK(plan->term[i].field.size && plan->term[i].clause <= EBPFMON_QUERY_TERMS);
        FUZZ_CHECK(plan->term[i].isLast == (i + 1 == plan->terms || plan->term[i + 1].clause != plan->term[i].clause));
    }
    checkField(&plan->value);
    if (plan->hist)
        FUZZ_CHECK(ebpfMonQueryHasValue(s) && (plan->hist != EBPFMON_QUERY_LINEAR ||
                   (plan->step >= 1 && plan->steps + 2 <= EBPFMON_QUERY_BARS_MAX)));
    FUZZ_CHECK(s->top >= 1 && s->top <= EBPFMON_QUERY_ROWS_MAX && s->interval >= 0.5 && s->order.maxKeys >= 1);
}

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    char why[512] = "", *text = malloc(size ? size : 1);
    ebpfMonQuerySet *set;

    memcpy(text, data, size); /* a file has no NUL at its end */
    set = ebpfMonQueryParse("queries.json", text, size, why, sizeof(why));
    FUZZ_CHECK((set != NULL) == (why[0] == 0));
    FUZZ_CHECK(ebpfMonTextIsClean(why)); /* because it is shown on a terminal */
    for (unsigned i = 0; set && i < set->count; i++)
        checkSpec(&set->spec[i]);
    free(set);
    free(text);
}
