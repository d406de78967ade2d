/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "history/historyRow.h"
#include "history/historyStore.h"
#include "history/historyWhy.h"

#define SECOND     1000000000ll
#define JSON_BYTES (4u << 20)
#define DEPTH      20   /* of the tree of effects, and of the list of causes */
#define ROWS       500  /* of the effects */
#define LATE       (60 * SECOND) /* a trace ends at most so long after the begin of one of its chains */
#define CHAIN_SIZE 32
#define FILE_SHIFT 60   /* of a row's key, above its id */
#define CLOCKS     (60 * SECOND) /* that those of two hosts may differ */
#define SELECT     "SELECT " EBPFMON_HISTORY_COLUMNS ", id, steps, tree FROM rows WHERE "
enum { atId = ebpfMonAtCount, atSteps, atTree };

typedef struct {
    const ebpfMonHistoryQuestion *question;
    sqlite3 *db[1 + EBPFMON_HISTORY_ALSO]; /* the file that is asked, and those of other hosts */
    unsigned dbs;
    FILE *out;
    ebpfMonJson *json;     /* NULL: text */
    int isTrace;           /* nonzero: "json" gets spans of OTLP */
    char trace[33];        /* … of this trace */
    uint64_t span[DEPTH + 2]; /* … by depth: the span that is the parent of those below */
    int64_t seen[ROWS];    /* keys of the rows of the effects */
    unsigned rows;
    int64_t until;         /* when the last of them was */
    int hasTrees;          /* a chain was kept with its records */
    int isCut;             /* there are more effects */
    int isUnsure;          /* two hosts were joined without the message of a put */
    int isFailed;          /* a query failed: "error" */
    char error[200];
} answer;

/* --- questions to the file --- */

static void noteFailure(answer *a, sqlite3 *db)
{
    a->isFailed = 1;
    ebpfMonHistoryStoreDescribe(db, a->error, sizeof(a->error));
}

/* NULL: it failed; the answer notes that. */
static sqlite3_stmt *prepare(answer *a, sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK)
        return stmt;
    noteFailure(a, db);
    return NULL;
}

static int isRow(answer *a, sqlite3_stmt *stmt)
{
    int status = stmt ? sqlite3_step(stmt) : SQLITE_DONE;

    if (status != SQLITE_ROW && status != SQLITE_DONE)
        noteFailure(a, sqlite3_db_handle(stmt));
    return status == SQLITE_ROW;
}

/* The first row of a query about a text, in the first file that has one; NULL: none has. */
static sqlite3_stmt *findRow(answer *a, const char *sql, const char *text, int64_t from, int64_t to)
{
    for (unsigned i = 0; i < a->dbs; i++) {
        sqlite3_stmt *stmt = prepare(a, a->db[i], sql);

        if (!stmt)
            return NULL;
        sqlite3_bind_text(stmt, 1, text, -1, SQLITE_TRANSIENT);
        if (sqlite3_bind_parameter_count(stmt) > 1) {
            sqlite3_bind_int64(stmt, 2, from);
            sqlite3_bind_int64(stmt, 3, to);
        }
        if (isRow(a, stmt))
            return stmt;
        sqlite3_finalize(stmt);
    }
    return NULL;
}

static unsigned getFile(const answer *a, sqlite3_stmt *row)
{
    unsigned i = 0;

    while (i + 1 < a->dbs && a->db[i] != sqlite3_db_handle(row))
        i++;
    return i;
}

static const char *nameFile(const answer *a, unsigned file)
{
    return file ? a->question->also[file - 1] : a->question->file;
}

/* Identifies a row of all files. */
static int64_t getKey(const answer *a, sqlite3_stmt *row)
{
    return sqlite3_column_int64(row, atId) | (int64_t)getFile(a, row) << FILE_SHIFT;
}

/* Nonzero: the put went to a server of another host, so the packets of its sender's host tell of it. */
static int isSent(sqlite3_stmt *put)
{
    const char *ioc = ebpfMonHistoryRowText(put, ebpfMonAtIoc), *port = strrchr(ioc, ':');

    return port && port[1] && strspn(port + 1, "0123456789") == strlen(port + 1);
}

/* A put in another host's file, by one of the queries below. NULL: no file has it. */
static sqlite3_stmt *findElsewhere(answer *a, sqlite3_stmt *put, const char *sql)
{
    static const int texts[] = { ebpfMonAtPv, ebpfMonAtPeer, ebpfMonAtValue, ebpfMonAtTrace };

    for (unsigned i = 0; i < a->dbs; i++) {
        sqlite3_stmt *other = a->db[i] != sqlite3_db_handle(put) ? prepare(a, a->db[i], sql) : NULL;

        if (!other)
            continue;
        for (int k = 0; k < 4; k++)
            sqlite3_bind_text(other, 1 + k, ebpfMonHistoryRowText(put, texts[k]), -1, SQLITE_TRANSIENT);
        sqlite3_bind_int(other, 5, !isSent(put));
        sqlite3_bind_int64(other, 6, sqlite3_column_int64(put, ebpfMonAtTime));
        sqlite3_bind_int64(other, 7, CLOCKS);
        sqlite3_bind_int64(other, 8, EBPFMON_HISTORY_RUN_LONGEST);
        if (isRow(a, other))
            return other;
        sqlite3_finalize(other);
    }
    return NULL;
}

/* The same put as the other host saw it. Of a put that was sent: how it arrived. Of a put that arrived: how it was
 * sent. Both rows have the message. If a row has no message, a put with the same connection, PV and value may be
 * the other side; the clocks of the hosts differ. *isCertain: all rows of the query are of this message. NULL: no file
 * has it. */
static sqlite3_stmt *findOtherSide(answer *a, sqlite3_stmt *put, int *isCertain)
{
#define OTHER SELECT "kind = 'put' AND (ioc GLOB '*:[0-9]*') = ?5 AND "
    static const char byMessage[] = OTHER "trace = ?4 ORDER BY time, id",
        byValue[] = OTHER "pv = ?1 AND peer = ?2 AND value = ?3 AND n = 1 AND (trace IS NULL OR ?4 = '') AND "
                          "time BETWEEN ?6 - ?7 AND ?6 + ?7 ORDER BY abs(time - ?6)",
        inRun[] = OTHER "pv = ?1 AND peer = ?2 AND n > 1 AND time BETWEEN ?6 - ?7 AND ?6 + ?7 + ?8 AND "
                        "first <= ?6 + ?7 ORDER BY abs(time - ?6)";
    sqlite3_stmt *other = ebpfMonHistoryRowText(put, ebpfMonAtTrace)[0] ? findElsewhere(a, put, byMessage) : NULL;

    *isCertain = other != NULL;
    if (!other && ebpfMonHistoryRowText(put, ebpfMonAtPeer)[0]) {
        other = findElsewhere(a, put, byValue);
        if (!other && !isSent(put)) /* its sender writes often */
            other = findElsewhere(a, put, inRun);
        a->isUnsure |= other != NULL;
    }
    return other;
}

/* The put with which this chain began. */
static sqlite3_stmt *findPutOf(answer *a, const char *chain)
{
    return findRow(a, SELECT "chain = ?1 AND kind = 'put' ORDER BY time, id LIMIT 1", chain, 0, 0);
}

/* The kept trace that has this chain. */
static sqlite3_stmt *findTraceOf(answer *a, const char *chain)
{
    int64_t begin = (int64_t)strtoull(chain, NULL, 16);
    sqlite3_stmt *stmt = findRow(a, SELECT "chain = ?1 AND kind = 'chain' LIMIT 1", chain, 0, 0);

    return stmt ? stmt : findRow(a, SELECT "kind = 'chain' AND kind <> 'put' AND time BETWEEN ?2 AND ?3 "
                                 "AND instr(' ' || steps || ' ', ' ' || ?1 || ' ') ORDER BY time LIMIT 1",
                                 chain, begin - SECOND, begin + LATE);
}

/* --- writing --- */

static void writeTree(answer *a, sqlite3_stmt *row, int depth)
{
    const char *tree = ebpfMonHistoryRowText(row, atTree);

    a->hasTrees |= tree[0] != 0;
    for (int first = 1; *tree; first = 0) {
        size_t length = strcspn(tree, "\n");

        if (!first) /* the first line says what the line above says */
            fprintf(a->out, "%*s%.*s\n", 2 * depth, "", (int)length, tree);
        tree += length + (tree[length] != 0);
    }
}

static void addAttribute(answer *a, const char *key, const char *text)
{
    if (!text[0])
        return;
    ebpfMonJsonOpenObject(a->json, NULL);
    ebpfMonJsonAddText(a->json, "key", key);
    ebpfMonJsonOpenObject(a->json, "value");
    ebpfMonJsonAddText(a->json, "stringValue", text);
    ebpfMonJsonCloseObject(a->json);
    ebpfMonJsonCloseObject(a->json);
}

static void addTime(answer *a, const char *key, int64_t ns)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long)ns);
    ebpfMonJsonAddText(a->json, key, text);
}

/* The address without port and brackets. */
static void addClient(answer *a, const char *peer)
{
    const char *colon = strrchr(peer, ':');
    char address[60];
    size_t length;

    peer += *peer == '[';
    length = colon ? (size_t)(colon - peer) : 0;
    length -= length && peer[length - 1] == ']';
    snprintf(address, sizeof(address), "%.*s", (int)length, peer);
    addAttribute(a, "client.address", address);
}

/* The attributes have the names of documentation/use/otlp.md; "epics.put.origin" is way and cause as text. */
static void addAttributes(answer *a, sqlite3_stmt *row, int isChain)
{
    ebpfMonJsonOpenList(a->json, "attributes");
    if (isChain) {
        addAttribute(a, "epics.record.name", ebpfMonHistoryRowText(row, ebpfMonAtPv));
    } else {
        addAttribute(a, "epics.pv", ebpfMonHistoryRowText(row, ebpfMonAtPv));
        addAttribute(a, "epics.value", ebpfMonHistoryRowText(row, ebpfMonAtValue));
        addAttribute(a, "epics.value_old", ebpfMonHistoryRowText(row, ebpfMonAtOld));
        addAttribute(a, "epics.put.origin", ebpfMonHistoryRowText(row, ebpfMonAtOrigin));
        addAttribute(a, "epics.put.result", ebpfMonHistoryRowText(row, ebpfMonAtResult));
        addAttribute(a, "user.name", ebpfMonHistoryRowText(row, ebpfMonAtUser));
        addClient(a, ebpfMonHistoryRowText(row, ebpfMonAtPeer));
    }
    ebpfMonJsonCloseList(a->json);
}

/* The same for each question about this row, and different for the rows of two hosts. FNV-1a. */
static uint64_t nameSpan(sqlite3_stmt *row)
{
    char text[500];
    uint64_t hash = 14695981039346656037u;

    snprintf(text, sizeof(text), "%lld %lld %s %s", (long long)sqlite3_column_int64(row, atId),
             (long long)sqlite3_column_int64(row, ebpfMonAtTime), ebpfMonHistoryRowText(row, ebpfMonAtIoc),
             ebpfMonHistoryRowText(row, ebpfMonAtPv));
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    return hash ? hash : 1;
}

/* Resource, scope and span of one row. A put takes no time; a chain took what its row says. */
static void writeSpan(answer *a, sqlite3_stmt *row, int depth)
{
    int isChain = strcmp(ebpfMonHistoryRowText(row, ebpfMonAtKind), "chain") == 0;
    int64_t end = sqlite3_column_int64(row, ebpfMonAtTime), ms = 0;
    char text[200];

    if (isChain)
        ms = (int64_t)(strtod(ebpfMonHistoryRowText(row, ebpfMonAtValue), NULL) * 1e6);
    a->span[depth] = nameSpan(row);
    ebpfMonJsonOpenObject(a->json, NULL);
    ebpfMonJsonOpenObject(a->json, "resource");
    ebpfMonJsonOpenList(a->json, "attributes");
    addAttribute(a, "service.name", ebpfMonHistoryRowText(row, ebpfMonAtIoc));
    ebpfMonJsonCloseList(a->json);
    ebpfMonJsonCloseObject(a->json);
    ebpfMonJsonOpenList(a->json, "scopeSpans");
    ebpfMonJsonOpenObject(a->json, NULL);
    ebpfMonJsonOpenList(a->json, "spans");
    ebpfMonJsonOpenObject(a->json, NULL);
    ebpfMonJsonAddText(a->json, "traceId", a->trace);
    snprintf(text, sizeof(text), "%016llx", (unsigned long long)a->span[depth]);
    ebpfMonJsonAddText(a->json, "spanId", text);
    snprintf(text, sizeof(text), "%016llx", depth ? (unsigned long long)a->span[depth - 1] : 0);
    ebpfMonJsonAddTextIfAny(a->json, "parentSpanId", depth ? text : "");
    snprintf(text, sizeof(text), "%s %.150s", isChain ? "chain of" : "put", ebpfMonHistoryRowText(row, ebpfMonAtPv));
    ebpfMonJsonAddText(a->json, "name", text);
    /* client, server, or internal */
    ebpfMonJsonAddInteger(a->json, "kind", isChain || !ebpfMonHistoryRowText(row, ebpfMonAtPeer)[0] ? 1 :
                          isSent(row) ? 3 : 2);
    addTime(a, "startTimeUnixNano", end - ms);
    addTime(a, "endTimeUnixNano", end);
    addAttributes(a, row, isChain);
    for (int i = 0; i < 2; i++) {
        ebpfMonJsonCloseObject(a->json);
        ebpfMonJsonCloseList(a->json);
    }
    ebpfMonJsonCloseObject(a->json);
}

/* Text: a line. JSON: the members of an object, which stays open. */
static void writeRow(answer *a, sqlite3_stmt *row, int depth)
{
    if (a->isTrace) {
        writeSpan(a, row, depth);
        return;
    }
    if (a->json) {
        ebpfMonJsonOpenObject(a->json, NULL);
        ebpfMonHistoryRowAddJson(row, a->json);
        if (a->dbs > 1)
            ebpfMonJsonAddText(a->json, "file", nameFile(a, getFile(a, row)));
        if (ebpfMonHistoryRowText(row, atTree)[0]) {
            a->hasTrees = 1;
            ebpfMonJsonAddCleanText(a->json, "tree", ebpfMonHistoryRowText(row, atTree));
        }
        return;
    }
    fprintf(a->out, "%*s%s%s%s: ", 2 * depth, "", getFile(a, row) ? nameFile(a, getFile(a, row)) : "",
            getFile(a, row) ? ", " : "", ebpfMonHistoryRowText(row, ebpfMonAtIoc));
    ebpfMonHistoryRowWriteText(row, a->out);
    writeTree(a, row, depth);
}

static void closeRow(answer *a)
{
    if (a->json && !a->isTrace)
        ebpfMonJsonCloseObject(a->json);
}

static void openList(answer *a, const char *key, const char *title)
{
    if (a->json)
        ebpfMonJsonOpenList(a->json, key);
    else
        fprintf(a->out, "%s\n", title);
}

static void closeList(answer *a)
{
    if (a->json)
        ebpfMonJsonCloseList(a->json);
}

static void writeNote(answer *a, const char *key, const char *text)
{
    if (a->json)
        ebpfMonJsonAddText(a->json, key, text);
    else
        fprintf(a->out, "%s\n", text);
}

/* --- causes --- */

/* What is known of the last row of the causes. */
typedef struct {
    char source[CHAIN_SIZE];
    char begun[500];       /* who or what began it, as text; empty: not known */
    int  isPerson;
} cause;

/* A change need not be a put, so it is not looked for: a person asks for that PV. */
static void takeCpLink(cause *c, const char *text)
{
    static const char link[] = "CP link from ";
    const char *at = strstr(text, link);

    if (at)
        snprintf(c->begun, sizeof(c->begun), "a change of %.*s, which a CP link watches: ask for that PV",
                 (int)strcspn(at + strlen(link), " ,)\n"), at + strlen(link));
}

static void takePut(cause *c, sqlite3_stmt *row)
{
    const char *who = ebpfMonHistoryRowText(row, ebpfMonAtWho), *origin = ebpfMonHistoryRowText(row, ebpfMonAtOrigin);

    snprintf(c->source, sizeof(c->source), "%s", ebpfMonHistoryRowText(row, ebpfMonAtSource));
    c->isPerson = !sqlite3_column_int(row, ebpfMonAtAutomatic);
    c->begun[0] = 0;
    if (c->isPerson)
        snprintf(c->begun, sizeof(c->begun), "the put of %s (%s)", who[0] ? who : "somebody whose name is not kept",
                 origin);
    else if (strstr(origin, "scan ") || strstr(origin, "I/O Intr") || strstr(origin, "Event") ||
             strstr(origin, "start-up"))
        snprintf(c->begun, sizeof(c->begun), "the IOC itself (%s)", origin);
    else
        takeCpLink(c, origin);
}

/* The header of the text of a trace ends with its cause. */
static void takeTrace(cause *c, sqlite3_stmt *row)
{
    const char *tree = ebpfMonHistoryRowText(row, atTree), *by = strstr(tree, ", by ");

    snprintf(c->source, sizeof(c->source), "%s", ebpfMonHistoryRowText(row, ebpfMonAtSource));
    c->isPerson = 0;
    c->begun[0] = 0;
    if (by && by < tree + strcspn(tree, "\n"))
        snprintf(c->begun, sizeof(c->begun), "%.*s", (int)strcspn(by + 5, "\n"), by + 5);
}

/* A put that arrived: what the sender's host knows of it. */
static void takeSender(answer *a, cause *c, sqlite3_stmt *put)
{
    int isCertain;
    sqlite3_stmt *sent = c->source[0] || isSent(put) ? NULL : findOtherSide(a, put, &isCertain);

    if (sent) {
        writeRow(a, sent, 1);
        closeRow(a);
        takePut(c, sent);
        if (!isCertain && sqlite3_column_int64(sent, ebpfMonAtN) > 1)
            c->source[0] = 0; /* that of another put of the run */
    }
    sqlite3_finalize(sent);
}

/* Goes up from a put, or from a kept trace ("from" NULL), as far as the history knows. */
static void writeCauses(answer *a, cause *c, sqlite3_stmt *from)
{
    openList(a, "causes", "Because of");
    if (from)
        takeSender(a, c, from);
    for (int i = 0; i < DEPTH && c->source[0]; i++) {
        sqlite3_stmt *trace = findTraceOf(a, c->source), *put;
        const char *chain = trace ? ebpfMonHistoryRowText(trace, ebpfMonAtChain) : c->source;

        put = findPutOf(a, chain);
        c->source[0] = 0;
        if (trace) {
            writeRow(a, trace, 1);
            closeRow(a);
            takeTrace(c, trace);
        }
        if (put) {
            writeRow(a, put, 1);
            closeRow(a);
            takePut(c, put);
            takeSender(a, c, put);
        }
        sqlite3_finalize(trace);
        sqlite3_finalize(put);
    }
    closeList(a);
    if (a->json)
        ebpfMonJsonAddText(a->json, "begunBy", c->source[0] ? "not known: there are earlier causes" :
                           c->begun[0] ? c->begun : "not known");
    else if (c->source[0])
        fputs("  There are earlier causes, which are left out.\n", a->out);
    else if (c->begun[0])
        fprintf(a->out, "  It began with %s.\n", c->begun);
    else
        fprintf(a->out, "  What was before that is not known: the history has no put that began this chain.\n");
}

/* --- effects --- */

static int isNew(answer *a, sqlite3_stmt *row)
{
    int64_t key = getKey(a, row);

    for (unsigned i = 0; i < a->rows; i++)
        if (a->seen[i] == key)
            return 0;
    if (a->rows == ROWS) {
        a->isCut = 1;
        return 0;
    }
    a->seen[a->rows++] = key;
    if (sqlite3_column_int64(row, ebpfMonAtTime) > a->until)
        a->until = sqlite3_column_int64(row, ebpfMonAtTime);
    return 1;
}

static void writeEffects(answer *a, const char *chain, int depth);

static void writeEffectsOfPut(answer *a, sqlite3_stmt *put, int depth)
{
    const char *chain = ebpfMonHistoryRowText(put, ebpfMonAtChain);
    int isCertain = 0;
    sqlite3_stmt *arrived = !chain[0] && isSent(put) ? findOtherSide(a, put, &isCertain) : NULL;

    if (!arrived) {
        writeEffects(a, chain, depth);
        return;
    }
    if (a->json && !a->isTrace)
        ebpfMonJsonOpenList(a->json, "effects");
    do { /* a message of pvAccess may have several puts */
        if (!isNew(a, arrived))
            continue;
        writeRow(a, arrived, depth);
        writeEffects(a, ebpfMonHistoryRowText(arrived, ebpfMonAtChain), depth + 1);
        closeRow(a);
    } while (isCertain && isRow(a, arrived));
    if (a->json && !a->isTrace)
        ebpfMonJsonCloseList(a->json);
    sqlite3_finalize(arrived);
}

/* What this chain caused, in one file: its puts, and chains that began without a put. */
static void writeEffectsIn(answer *a, sqlite3 *db, const char *chain, int depth)
{
    sqlite3_stmt *row = prepare(a, db, SELECT "source = ?1 AND NOT (kind = 'chain' AND EXISTS (SELECT 1 FROM rows AS p "
                                "WHERE p.chain = rows.chain AND p.kind = 'put')) ORDER BY time, id");

    if (row)
        sqlite3_bind_text(row, 1, chain, -1, SQLITE_TRANSIENT);
    while (isRow(a, row)) {
        int isChain = strcmp(ebpfMonHistoryRowText(row, ebpfMonAtKind), "chain") == 0;

        if (!isNew(a, row))
            continue;
        writeRow(a, row, depth);
        if (isChain) { /* its chains follow from "steps"; its own line is written */
            char id[CHAIN_SIZE];

            snprintf(id, sizeof(id), "%s", ebpfMonHistoryRowText(row, ebpfMonAtChain));
            writeEffects(a, id, depth + 1);
        } else {
            writeEffectsOfPut(a, row, depth + 1);
        }
        closeRow(a);
    }
    sqlite3_finalize(row);
}

static void writeEffectsOf(answer *a, const char *chain, int depth)
{
    for (unsigned i = 0; i < a->dbs; i++)
        writeEffectsIn(a, a->db[i], chain, depth);
}

/* What followed from a put or a chain. JSON: a list in its object. */
static void writeEffects(answer *a, const char *chain, int depth)
{
    sqlite3_stmt *trace = chain[0] && depth < DEPTH ? findRow(a, SELECT "chain = ?1 AND kind = 'chain' LIMIT 1", chain,
                                                              0, 0) : NULL;
    const char *step = trace ? ebpfMonHistoryRowText(trace, atSteps) : "";

    if (!chain[0])
        return;
    if (depth >= DEPTH) {
        a->isCut = 1;
        return;
    }
    if (a->json && !a->isTrace)
        ebpfMonJsonOpenList(a->json, "effects");
    if (trace && isNew(a, trace)) {
        writeRow(a, trace, depth);
        closeRow(a);
    }
    writeEffectsOf(a, chain, depth);
    while (*step) {
        size_t length = strcspn(step, " ");
        char id[CHAIN_SIZE];

        snprintf(id, sizeof(id), "%.*s", (int)length, step);
        writeEffectsOf(a, id, depth);
        step += length + (step[length] != 0);
    }
    sqlite3_finalize(trace);
    if (a->json && !a->isTrace)
        ebpfMonJsonCloseList(a->json);
}

/* Puts of links that write often are kept as runs: one of these may follow from the put, too. */
static void writeRuns(answer *a, sqlite3_stmt *put)
{
    const char *pv = ebpfMonHistoryRowText(put, ebpfMonAtPv);
    int64_t at = sqlite3_column_int64(put, ebpfMonAtTime);
    sqlite3_stmt *row = prepare(a, sqlite3_db_handle(put), SELECT "automatic = 1 AND kind = 'put' AND n > 1 AND "
                                "time BETWEEN ?2 AND ?3 AND first <= ?2 AND instr(origin, 'chain of ' || ?1) "
                                "ORDER BY time LIMIT 20");
    int rows = 0;

    if (row) {
        sqlite3_bind_text(row, 1, pv, (int)strcspn(pv, "."), SQLITE_TRANSIENT);
        sqlite3_bind_int64(row, 2, at);
        sqlite3_bind_int64(row, 3, at + EBPFMON_HISTORY_RUN_LONGEST);
    }
    while (isRow(a, row)) {
        if (!rows++)
            openList(a, "perhaps", "Perhaps also one put of these runs, which are not kept one by one");
        writeRow(a, row, 1);
        closeRow(a);
    }
    if (rows)
        closeList(a);
    sqlite3_finalize(row);
}

/* --- the whole --- */

/* Times at which nobody watched, or rows were lost, from the put to the end of what followed, or to the time that was
 * asked for: another put may have been then. */
static void writeGaps(answer *a, int64_t from, int64_t to)
{
    int rows = 0;

    for (unsigned i = 0; i < a->dbs; i++) {
        sqlite3_stmt *row = prepare(a, a->db[i], "SELECT " EBPFMON_HISTORY_COLUMNS " FROM gaps WHERE time >= ?1 AND "
                                    "first <= ?2 AND first > 0 ORDER BY time LIMIT 5");

        if (row) {
            sqlite3_bind_int64(row, 1, from);
            sqlite3_bind_int64(row, 2, to);
        }
        while (!(a->json && rows) && isRow(a, row)) {
            rows++;
            if (a->json) {
                ebpfMonJsonAddText(a->json, "gap", ebpfMonHistoryRowText(row, ebpfMonAtValue));
            } else {
                fputs("In this time: ", a->out);
                ebpfMonHistoryRowWriteText(row, a->out);
            }
        }
        sqlite3_finalize(row);
    }
}

/* "to": the time that was asked for. */
static void writePut(answer *a, sqlite3_stmt *put, int64_t to)
{
    int64_t at = sqlite3_column_int64(put, ebpfMonAtTime);
    char time[40];
    cause c = { .isPerson = 0 };

    a->until = at;
    if (a->json)
        ebpfMonJsonWriteKey(a->json, "put");
    writeRow(a, put, 0);
    closeRow(a);
    takePut(&c, put);
    if (c.source[0] || !c.isPerson || a->dbs > 1)
        writeCauses(a, &c, put);
    if (!a->json)
        fputs("What followed\n", a->out);
    a->seen[a->rows++] = getKey(a, put);
    writeEffectsOfPut(a, put, 1);
    if (!a->json && a->rows == 1)
        fputs("  Nothing that the history has.\n", a->out);
    writeRuns(a, put);
    if (a->rows > 1) {
        ebpfMonHistoryFormatTime(a->until, a->json != NULL, time, sizeof(time));
        if (!a->json)
            fprintf(a->out, "The last of it was at %s.\n", time);
        else
            ebpfMonJsonAddText(a->json, "until", time);
    }
    writeGaps(a, at, to > a->until ? to : a->until);
    if (!ebpfMonHistoryRowText(put, ebpfMonAtChain)[0] && !ebpfMonHistoryRowText(put, ebpfMonAtSource)[0])
        writeNote(a, "chain", "Not known: to which chain this put belongs. It was seen in packets only, or at level "
                              "counts, or it took several lock sets at once.");
    else if (!a->hasTrees)
        writeNote(a, "records", "Not known: which records processed. Level trace keeps that, and level chains of slow "
                                "chains.");
    if (a->isUnsure)
        writeNote(a, "hosts", "Perhaps: no file of another host has the message of such a put. The one with the same "
                              "connection, PV and value that is nearest in time is shown, or a run of such puts.");
    if (a->isCut)
        writeNote(a, "more", "There is more, which is left out.");
}

/* The put before this one, on the way up; NULL: no file has it. */
static sqlite3_stmt *findBefore(answer *a, sqlite3_stmt *put)
{
    char source[CHAIN_SIZE];
    sqlite3_stmt *trace, *before;
    int isCertain;

    snprintf(source, sizeof(source), "%s", ebpfMonHistoryRowText(put, ebpfMonAtSource));
    if (!source[0]) {
        before = isSent(put) ? NULL : findOtherSide(a, put, &isCertain);
        if (!before || isCertain || sqlite3_column_int64(before, ebpfMonAtN) == 1)
            return before;
        sqlite3_finalize(before); /* which put of the run it is, is not known */
        return NULL;
    }
    trace = findTraceOf(a, source);
    before = findPutOf(a, trace ? ebpfMonHistoryRowText(trace, ebpfMonAtChain) : source);
    sqlite3_finalize(trace);
    return before;
}

/* The put that began what led to this one; "put" itself, if the history knows no earlier one. */
static sqlite3_stmt *findOrigin(answer *a, sqlite3_stmt *put)
{
    for (int i = 0; i < DEPTH; i++) {
        sqlite3_stmt *before = findBefore(a, put);

        if (!before)
            break;
        sqlite3_finalize(put);
        put = before;
    }
    return put;
}

/* The id of the trace that "put" begins: that of the first message which its chain sent, else of its own message. Each
 * host of a trace knows one of these two. */
static void nameTrace(answer *a, sqlite3_stmt *put)
{
    const char *chain = ebpfMonHistoryRowText(put, ebpfMonAtChain);
    sqlite3_stmt *sent = chain[0] ? findRow(a, SELECT "source = ?1 AND kind = 'put' AND trace IS NOT NULL AND "
                                            "ioc GLOB '*:[0-9]*' ORDER BY time, id LIMIT 1", chain, 0, 0) : NULL;
    const char *id = ebpfMonHistoryRowText(sent ? sent : put, ebpfMonAtTrace);

    if (id[0])
        snprintf(a->trace, sizeof(a->trace), "%.32s", id);
    else
        snprintf(a->trace, sizeof(a->trace), "%016llx%016llx",
                 (unsigned long long)sqlite3_column_int64(put, ebpfMonAtTime), (unsigned long long)nameSpan(put));
    sqlite3_finalize(sent);
}

/* All as spans of one trace. Takes the put, and returns the one that is to be finalized. */
static sqlite3_stmt *writeTrace(answer *a, sqlite3_stmt *put)
{
    put = findOrigin(a, put);
    nameTrace(a, put);
    ebpfMonJsonOpenList(a->json, "resourceSpans");
    a->seen[a->rows++] = getKey(a, put);
    writeRow(a, put, 0);
    writeEffectsOfPut(a, put, 1);
    ebpfMonJsonCloseList(a->json);
    return put;
}

/* No put: a kept trace shows that the record processed. */
static int writeProcessing(answer *a, const char *pv, int64_t to)
{
    sqlite3_stmt *trace = findRow(a, SELECT "kind = 'chain' AND kind <> 'put' AND time BETWEEN ?2 AND ?3 "
                                  "AND instr(tree, ' ' || ?1 || ' (') ORDER BY time DESC LIMIT 1", pv,
                                  to - 3600 * SECOND, to);
    cause c = { .isPerson = 0 };

    if (!trace)
        return 0;
    if (a->json)
        ebpfMonJsonWriteKey(a->json, "chain");
    else
        fprintf(a->out, "The history has no put to %s. It processed in\n", pv);
    writeRow(a, trace, 0);
    closeRow(a);
    takeTrace(&c, trace);
    snprintf(c.source, sizeof(c.source), "%s", ebpfMonHistoryRowText(trace, ebpfMonAtChain));
    writeCauses(a, &c, NULL);
    sqlite3_finalize(trace);
    return 1;
}

/* The last put to the PV that wrote something. If a run of puts goes on at that time, which of them was the last is not
 * known. NULL: there is none. */
static sqlite3_stmt *findPut(answer *a, const char *pv, int64_t to)
{
#define WROTE "pv = ?1 AND kind = 'put' AND coalesce(result, '') NOT IN ('denied', 'failed', 'lost', 'unwritten') "
    sqlite3_stmt *put = findRow(a, SELECT WROTE "AND time BETWEEN ?2 AND ?3 ORDER BY time DESC, id DESC LIMIT 1", pv,
                                0, to);
    sqlite3_stmt *run = findRow(a, SELECT WROTE "AND n > 1 AND time BETWEEN ?2 + 1 AND ?3 AND first <= ?2 "
                                "ORDER BY time LIMIT 1", pv, to, to + EBPFMON_HISTORY_RUN_LONGEST);

    if (!run || a->isTrace) {
        sqlite3_finalize(put ? run : NULL);
        return put ? put : run;
    }
    writeNote(a, "run", "A run of automatic puts went on at that time; which of them was the last one is not known.");
    if (put && sqlite3_column_int64(put, ebpfMonAtTime) > sqlite3_column_int64(run, ebpfMonAtFirst)) {
        writeNote(a, "or", "It may have written after the put that follows.");
        sqlite3_finalize(run);
        return put;
    }
    sqlite3_finalize(put);
    return run;
}

/* A time stands for all that is written so. */
static int64_t findPrecision(const char *time)
{
    const char *colon = strchr(time, ':'), *point = strchr(time, '.');
    int64_t precision = SECOND;

    if (time[0] == '-' || !colon || !strchr(colon + 1, ':'))
        return 0;
    for (point = point ? point + 1 : ""; *point >= '0' && *point <= '9' && precision > 1; point++)
        precision /= 10;
    return precision - 1;
}

static int answerWhy(answer *a, const char *pv, int64_t to)
{
    sqlite3_stmt *put = findPut(a, pv, to);
    int isFound = put != NULL;

    if (put && a->isTrace)
        put = writeTrace(a, put);
    else if (put)
        writePut(a, put, to);
    else if (!a->isFailed && !a->isTrace)
        isFound = writeProcessing(a, pv, to);
    if (!isFound && !a->isFailed && !a->isTrace)
        writeNote(a, "none", "The history has no put to this PV before that time, and no kept chain in which it "
                             "processed. It may have its value from its own processing, or from before the history.");
    sqlite3_finalize(put);
    return isFound;
}

static int isSameFile(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int openFiles(answer *a, char *why, size_t size)
{
    char text[200];

    for (unsigned i = 0; i <= EBPFMON_HISTORY_ALSO && (i == 0 || a->question->also[i - 1]); i++) {
        const char *file = nameFile(a, i);

        a->db[i] = ebpfMonHistoryStoreOpenReader(file, text, sizeof(text));
        if (!a->db[i]) {
            snprintf(why, size, "%s%s%s", i ? file : "", i ? ": " : "", text);
            return -1;
        }
        a->dbs++;
        if (i && isSameFile(file, a->question->file)) { /* each put would be joined with itself */
            snprintf(why, size, "--also gives the same file again");
            return -1;
        }
    }
    return 0;
}

static void closeFiles(answer *a)
{
    for (unsigned i = 0; i < a->dbs; i++)
        sqlite3_close(a->db[i]);
}

int ebpfMonHistoryWhy(const ebpfMonHistoryQuestion *q, const char *time, int64_t now, FILE *out, char *why, size_t size)
{
    ebpfMonJson json = { 0 };
    answer a = { .question = q, .out = out };
    char pv[200], *text = NULL;
    int64_t to = now;
    int isFound;

    if (time && ebpfMonHistoryParseTime(time, now, 1, &to)) {
        snprintf(why, size, "\"%s\" is no time. Give one as -2h, 03:10:05 or \"2026-11-28 03:10:05.123\"", time);
        return -1;
    }
    to += time ? findPrecision(time) : 0;
    if (q->form != ebpfMonHistoryText && (!(text = malloc(JSON_BYTES)) || ebpfMonJsonBegin(&json, text, JSON_BYTES))) {
        snprintf(why, size, "no memory");
        free(text);
        return -1;
    }
    a.json = text ? &json : NULL;
    a.isTrace = q->form == ebpfMonHistoryOtlp;
    if (openFiles(&a, why, size)) {
        closeFiles(&a);
        ebpfMonJsonFree(&json);
        free(text);
        return -1;
    }
    isFound = answerWhy(&a, ebpfMonHistoryNamePv(q->pv, pv, sizeof(pv)), to);
    if (text) {
        size_t length = ebpfMonJsonEnd(&json);

        if (!length) {
            a.isFailed = 1;
            snprintf(a.error, sizeof(a.error), "the answer is too long for JSON. Ask for text");
        }
        fwrite(text, 1, length, out);
        fputs(length ? "\n" : "", out);
    }
    if (a.isFailed)
        snprintf(why, size, "%s", a.error);
    ebpfMonJsonFree(&json);
    free(text);
    closeFiles(&a);
    return a.isFailed ? -1 : isFound;
}
