/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <compilerDependencies.h>

#include "history/historyRow.h"
#include "history/historyStore.h"
#include "history/packetChains.h"

enum { sqlPut, sqlChain, sqlWrites, sqlStatements };

static const char *const statements[sqlStatements] = {
    /* of a put to a server of this host there may be two: as it was sent, and as it arrived */
    [sqlPut] = "SELECT pv, who, origin, result, chain FROM rows WHERE trace = ?1 AND kind = 'put' "
               "ORDER BY chain IS NULL, id LIMIT 1",
    [sqlChain] = "SELECT pv, value, tree FROM rows WHERE chain = ?1 AND kind = 'chain' LIMIT 1",
    [sqlWrites] = "SELECT pv, origin FROM rows WHERE source = ?1 AND kind = 'put' ORDER BY time, id LIMIT 20",
};

struct ebpfMonPacketChains {
    sqlite3 *db;
    sqlite3_stmt *stmt[sqlStatements];
};

ebpfMonPacketChains *ebpfMonPacketChainsOpen(const char *file)
{
    ebpfMonPacketChains *c = calloc(1, sizeof(*c));
    int isGood = c && sqlite3_open_v2(file, &c->db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK;

    for (int i = 0; isGood && i < sqlStatements; i++)
        isGood = sqlite3_prepare_v2(c->db, statements[i], -1, &c->stmt[i], NULL) == SQLITE_OK;
    if (isGood)
        return c;
    ebpfMonPacketChainsClose(c);
    return NULL;
}

void ebpfMonPacketChainsClose(ebpfMonPacketChains *c)
{
    if (!c)
        return;
    for (int i = 0; i < sqlStatements; i++)
        sqlite3_finalize(c->stmt[i]);
    sqlite3_close(c->db);
    free(c);
}

typedef struct {
    char  *buf;
    size_t size, used;
} lines;

/* A line that has no room is left out. */
static void EPICS_PRINTF_STYLE(2, 3) addLine(lines *l, const char *format, ...)
{
    size_t left = l->size - l->used;
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(l->buf + l->used, left, format, args);
    va_end(args);
    if (length < 0 || (size_t)length + 1 >= left)
        return;
    l->used += (size_t)length;
    l->buf[l->used++] = '\n';
}

/* The first line of a tree says what its chain is. */
static void addTree(lines *l, const char *tree)
{
    for (const char *line = strchr(tree, '\n'); line && line[1]; line = strchr(line, '\n')) {
        line++;
        addLine(l, "%.*s", (int)strcspn(line, "\n"), line);
    }
}

static sqlite3_stmt *ask(ebpfMonPacketChains *c, int which, const char *key)
{
    sqlite3_bind_text(c->stmt[which], 1, key, -1, SQLITE_TRANSIENT);
    return c->stmt[which];
}

static void addChain(ebpfMonPacketChains *c, const char *chain, lines *l)
{
    sqlite3_stmt *row = ask(c, sqlChain, chain), *writes = ask(c, sqlWrites, chain);

    if (sqlite3_step(row) == SQLITE_ROW) {
        addLine(l, "chain of %s: %s", ebpfMonHistoryRowText(row, 0), ebpfMonHistoryRowText(row, 1));
        addTree(l, ebpfMonHistoryRowText(row, 2));
    }
    sqlite3_reset(row);
    while (sqlite3_step(writes) == SQLITE_ROW) {
        const char *origin = ebpfMonHistoryRowText(writes, 1), *link = strstr(origin, "CA link ");

        origin = link ? link : origin; /* without its chain and cause, which are this put's */
        addLine(l, "its chain wrote %s (%.*s)", ebpfMonHistoryRowText(writes, 0), (int)strcspn(origin, ","), origin);
    }
    sqlite3_reset(writes);
}

size_t ebpfMonPacketChainsDescribe(ebpfMonPacketChains *c, const char *trace, char *buf, size_t size)
{
    sqlite3_stmt *put = ask(c, sqlPut, trace);
    lines l = { buf, size, 0 };

    if (sqlite3_step(put) == SQLITE_ROW) {
        addLine(&l, "%s by %s (%s) [%s]", ebpfMonHistoryRowText(put, 0), ebpfMonHistoryRowText(put, 1),
                ebpfMonHistoryRowText(put, 2), ebpfMonHistoryRowText(put, 3));
        addChain(c, ebpfMonHistoryRowText(put, 4), &l);
    }
    sqlite3_reset(put);
    return l.used;
}
