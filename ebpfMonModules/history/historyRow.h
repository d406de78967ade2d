/* SPDX-License-Identifier: BSD-3-Clause */
/* One row of an answer as text, JSON, CSV, or as caPutLog writes it. For the program ebpfMonHistory. One thread. */
#ifndef EBPFMON_HISTORYROW_H
#define EBPFMON_HISTORYROW_H

#include <stdint.h>
#include <stdio.h>
#include <sqlite3.h>

#include "export/shared/jsonGen.h"

/* What a query must select for the functions below, in this order. */
#define EBPFMON_HISTORY_COLUMNS "time, kind, automatic, ioc, pv, value, old, user, host, peer, who, origin, result, " \
                                "reason, n, first, least, most, chain, source, trace, hash"
enum {
    ebpfMonAtTime, ebpfMonAtKind, ebpfMonAtAutomatic, ebpfMonAtIoc, ebpfMonAtPv, ebpfMonAtValue, ebpfMonAtOld,
    ebpfMonAtUser, ebpfMonAtHost, ebpfMonAtPeer, ebpfMonAtWho, ebpfMonAtOrigin, ebpfMonAtResult, ebpfMonAtReason,
    ebpfMonAtN, ebpfMonAtFirst, ebpfMonAtLeast, ebpfMonAtMost, ebpfMonAtChain, ebpfMonAtSource, ebpfMonAtTrace,
    ebpfMonAtHash, ebpfMonAtCount
};

/* A run ends at most so long after each of its puts; ns. */
#define EBPFMON_HISTORY_RUN_LONGEST 700000000000ll

/* "2026-11-28 03:10:05.500" in local time; with "isIso" in UTC, with "T" and "Z". "ns": since 1970. */
void ebpfMonHistoryFormatTime(int64_t ns, int isIso, char *buf, size_t size);

/* Never NULL; valid until the next step of the query. */
const char *ebpfMonHistoryRowText(sqlite3_stmt *row, int at);

/* Each writes one line. */
void ebpfMonHistoryRowWriteText(sqlite3_stmt *row, FILE *out);
void ebpfMonHistoryRowWriteCaPutLog(sqlite3_stmt *row, FILE *out);
void ebpfMonHistoryRowWriteJson(sqlite3_stmt *row, ebpfMonJson *json, FILE *out); /* without memory nothing */
void ebpfMonHistoryRowWriteCsvHeader(FILE *out);
void ebpfMonHistoryRowWriteCsv(sqlite3_stmt *row, FILE *out);

/* Adds its members to the open object. */
void ebpfMonHistoryRowAddJson(sqlite3_stmt *row, ebpfMonJson *json);

#endif
