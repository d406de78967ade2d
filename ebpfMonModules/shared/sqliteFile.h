/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An SQLite file of a module: whether it is ours, and what goes wrong with it. With journal_mode WAL and synchronous
 * NORMAL nothing that was written is lost if the monitor is killed. If the host loses its power, the last transactions
 * may be missing, but the file is not damaged (sqlite.org/pragma.html#pragma_synchronous).
 *
 * Functions return 0, or -1: "why" says what is wrong, and what to do. Header only: the core is not linked with SQLite.
 */
#ifndef EBPFMON_SQLITEFILE_H
#define EBPFMON_SQLITEFILE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/files.h"

#define EBPFMON_SQLITE_PAGE    4096
#define EBPFMON_SQLITE_BUSY_MS 2000

/* What is the same for all files of a module. */
typedef struct {
    int application;      /* PRAGMA application_id, by which we know our own files */
    int version;          /* PRAGMA user_version */
    const char *whenFull; /* what to do if there is no room */
} ebpfMonSqliteKind;

typedef struct {
    sqlite3 *db;
    const ebpfMonSqliteKind *kind;
    int lock;             /* 1 + a descriptor of the file, with a lock against a second writer; 0: none */
} ebpfMonSqlite;

static inline void ebpfMonSqliteDescribe(const ebpfMonSqlite *file, const char *doing, char *why, size_t size)
{
    int code = file->db ? sqlite3_errcode(file->db) : SQLITE_NOMEM;
    const char *todo = code == SQLITE_FULL ? file->kind->whenFull :
                       code == SQLITE_CORRUPT || code == SQLITE_NOTADB ?
                       ". Move the file away, or repair it with sqlite3 .recover" :
                       code == SQLITE_BUSY ? ". Another program has locked the file: end it" : "";

    snprintf(why, size, "%s: %s%s", doing, file->db ? sqlite3_errmsg(file->db) : "no memory", todo);
}

static inline int ebpfMonSqliteRun(const ebpfMonSqlite *file, const char *sql, char *why, size_t size)
{
    if (sqlite3_exec(file->db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    ebpfMonSqliteDescribe(file, "not written", why, size);
    return -1;
}

/* The number that a query gives, 0 if it gives none; -1: "why" says what is wrong. */
static inline int64_t ebpfMonSqliteGetNumber(const ebpfMonSqlite *file, const char *sql, char *why, size_t size)
{
    sqlite3_stmt *stmt = NULL;
    int status = sqlite3_prepare_v2(file->db, sql, -1, &stmt, NULL);
    int64_t n = -1;

    if (status == SQLITE_OK)
        status = sqlite3_step(stmt);
    if (status == SQLITE_ROW)
        n = sqlite3_column_int64(stmt, 0);
    else if (status == SQLITE_DONE)
        n = 0;
    else
        ebpfMonSqliteDescribe(file, "the file cannot be read", why, size);
    sqlite3_finalize(stmt);
    return n;
}

/* Accepts an empty file, and one that has our application_id. */
static inline int ebpfMonSqliteCheckOwner(const ebpfMonSqlite *file, char *why, size_t size)
{
    int64_t tables = ebpfMonSqliteGetNumber(file, "SELECT count(*) FROM sqlite_master", why, size);
    int64_t owner = tables < 0 ? -1 : ebpfMonSqliteGetNumber(file, "PRAGMA application_id", why, size);
    int64_t version = owner < 0 ? -1 : ebpfMonSqliteGetNumber(file, "PRAGMA user_version", why, size);

    if (version < 0)
        return -1;
    if ((tables && owner != file->kind->application) || version > file->kind->version) {
        snprintf(why, size, "%s. Choose another file", tables && owner != file->kind->application ?
                 "this is the database of another program" : "a newer release of ebpfMon wrote it");
        return -1;
    }
    return 0;
}

/* For who writes, before Open: makes the file if it is not there, and checks that nobody else can replace it. SQLite
 * makes two more files in its folder (-wal, -shm), so other users must not be able to make files there. Of two monitors
 * each would keep all that both see. */
static inline int ebpfMonSqliteLock(ebpfMonSqlite *file, const char *path, char *why, size_t size)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    struct stat st;
    int fd;

    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 2, slash ? path : "./");
    if (stat(folder, &st) == 0 && (st.st_mode & S_IWOTH)) {
        snprintf(why, size, "everybody may write in its folder: choose another folder, or chmod o-w");
        return -1;
    }
    fd = ebpfMonOwnFileOpen(path, &st, why, size);
    file->lock = fd + 1;
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) /* some file systems have no locks */
        return 0;
    snprintf(why, size, "another monitor writes this file: give each one its own");
    return -1;
}

/* Opens a file, and checks whose it is. If that fails, the caller closes it. */
static inline int ebpfMonSqliteOpen(ebpfMonSqlite *file, const ebpfMonSqliteKind *kind, const char *path, int flags,
                                    char *why, size_t size)
{
    file->kind = kind;
    if (sqlite3_open_v2(path, &file->db, flags, NULL) != SQLITE_OK) {
        ebpfMonSqliteDescribe(file, "the file cannot be opened", why, size);
        return -1;
    }
    sqlite3_busy_timeout(file->db, EBPFMON_SQLITE_BUSY_MS);
    return ebpfMonSqliteCheckOwner(file, why, size);
}

/* Makes the file one that we write: "schema" makes what is not there yet. */
static inline int ebpfMonSqliteMake(const ebpfMonSqlite *file, const char *schema, char *why, size_t size)
{
    char sql[100];

    snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d", file->kind->application,
             file->kind->version);
    return ebpfMonSqliteRun(file, "PRAGMA journal_mode = WAL", why, size) ||
           ebpfMonSqliteRun(file, "PRAGMA synchronous = NORMAL", why, size) ||
           ebpfMonSqliteRun(file, schema, why, size) || ebpfMonSqliteRun(file, sql, why, size) ? -1 : 0;
}

static inline int ebpfMonSqlitePrepare(const ebpfMonSqlite *file, const char *const *sql, sqlite3_stmt **stmt,
                                       unsigned count, char *why, size_t size)
{
    for (unsigned i = 0; i < count; i++)
        if (sqlite3_prepare_v2(file->db, sql[i], -1, &stmt[i], NULL) != SQLITE_OK) {
            ebpfMonSqliteDescribe(file, "the file does not have the tables of ebpfMon", why, size);
            return -1;
        }
    return 0;
}

static inline void ebpfMonSqliteClose(ebpfMonSqlite *file, sqlite3_stmt **stmt, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        sqlite3_finalize(stmt[i]);
    sqlite3_close(file->db);
    if (file->lock)
        close(file->lock - 1); /* after SQLite: this ends its locks on the file, too (fcntl(2)) */
}

/* Pages that are used. */
static inline int64_t ebpfMonSqliteCountPages(const ebpfMonSqlite *file, char *why, size_t size)
{
    return ebpfMonSqliteGetNumber(file, "PRAGMA page_count", why, size) -
           ebpfMonSqliteGetNumber(file, "PRAGMA freelist_count", why, size);
}

/* SQLite keeps pages in its memory and goes on if another program removes the file, or writes over it; what it writes
 * then is lost when the monitor ends. So look before each transaction. */
static inline int ebpfMonSqliteCheckUnchanged(const ebpfMonSqlite *file, char *why, size_t size)
{
    static const char begin[16] = "SQLite format 3"; /* sqlite.org/fileformat.html */
    char found[sizeof(begin)];
    sqlite3_file *open = NULL;
    int isMoved = 0;

    if (sqlite3_file_control(file->db, "main", SQLITE_FCNTL_HAS_MOVED, &isMoved) == SQLITE_OK && isMoved) {
        snprintf(why, size, "somebody has moved or removed the file. A new one is begun");
        return -1;
    }
    if (sqlite3_file_control(file->db, "main", SQLITE_FCNTL_FILE_POINTER, &open) != SQLITE_OK || !open ||
        !open->pMethods ||
        (open->pMethods->xRead(open, found, sizeof(found), 0) == SQLITE_OK &&
         memcmp(found, begin, sizeof(begin)) == 0))
        return 0;
    snprintf(why, size, "somebody has written over the file. Move it away, or repair it with sqlite3 .recover");
    return -1;
}

#endif
