/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsString.h>
#include <epicsTime.h>

#include "inventory/inventoryFile.h"
#include "inventory/iocList.h"
#include "export/shared/jsonGen.h" /* the last one: epicsVersion.h makes a macro of epicsReleaseVersion */

#define LINE_BYTES (4u << 20) /* a record has 1 MiB of text at most (iocInventory.c), and JSON escapes some
                               * characters */

/* The fields that whatrecord and people look for. If a record type does not have a field, it is left out. */
static const char *const fieldNames[] = {
    "DESC", "EGU", "PREC", "DTYP", "SCAN", "PINI", "ASG", "FTVL", "NELM", "HOPR", "LOPR", "DRVH", "DRVL", "HIHI",
    "HIGH", "LOW", "LOLO", "HHSV", "HSV", "LSV", "LLSV", "ZNAM", "ONAM", "CALC", "OCAL", "DOL", "INP", "OUT",
    "FLNK", "SIOL", "INPA", "INPB", "INPC", "INPD", "INPE", "INPF", "INPG", "INPH", "INPI", "INPJ", "INPK", "INPL",
    NULL
};

static const char *const variableNames[] = {
    "EPICS_BASE", "TOP", "ARCH", "IOC", "EPICS_CA_ADDR_LIST", "EPICS_CA_MAX_ARRAY_BYTES", "PWD", "ENGINEER", "LOCATION",
    "CONTACT", NULL
};

typedef struct {
    FILE *file;
    ebpfMonWorker *worker;
    const ebpfMonInventoryIoc *ioc;
    ebpfMonJson json;
    char *line;        /* LINE_BYTES */
    unsigned records;
    int   isBad;       /* a line could not be made or written */
} fileWriter;

static void endLine(fileWriter *w)
{
    size_t length = ebpfMonJsonEnd(&w->json);

    if (!length || fwrite(w->line, 1, length, w->file) != length || fputc('\n', w->file) == EOF)
        w->isBad = 1;
}

static void addVariable(void *arg, const char *name, const char *value)
{
    ebpfMonJsonAddText(&((fileWriter *)arg)->json, name, value);
}

static void addPairs(ebpfMonJson *json, const char *key, const ebpfMonInventoryPair *pair, unsigned count)
{
    if (!count)
        return;
    ebpfMonJsonOpenObject(json, key);
    for (unsigned i = 0; i < count; i++)
        ebpfMonJsonAddCleanText(json, pair[i].name, pair[i].value);
    ebpfMonJsonCloseObject(json);
}

/* IOC and record must come first in the line: inventoryDiff.c needs them there. */
static int addRecord(void *arg, const ebpfMonInventoryRecord *record)
{
    fileWriter *w = arg;

    if (ebpfMonJsonBegin(&w->json, w->line, LINE_BYTES)) {
        w->isBad = 1;
        return 1;
    }
    ebpfMonJsonAddText(&w->json, "ioc", w->ioc->name);
    ebpfMonJsonAddText(&w->json, "record", record->name);
    ebpfMonJsonAddText(&w->json, "type", record->type);
    if (record->aliases) {
        ebpfMonJsonOpenList(&w->json, "aliases");
        for (unsigned i = 0; i < record->aliases; i++)
            ebpfMonJsonWriteText(&w->json, record->alias[i]);
        ebpfMonJsonCloseList(&w->json);
    }
    addPairs(&w->json, "info", record->info, record->infos);
    addPairs(&w->json, "fields", record->field, record->fields);
    endLine(w);
    w->records++;
    return w->isBad;
}

static void addIoc(fileWriter *w, const ebpfMonInventorySink *sink)
{
    epicsTimeStamp now;
    char text[40];

    if (ebpfMonJsonBegin(&w->json, w->line, LINE_BYTES)) {
        w->isBad = 1;
        return;
    }
    epicsTimeGetCurrent(&now);
    epicsTimeToStrftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S.%03f%z", &now);
    ebpfMonJsonAddText(&w->json, "ioc", w->ioc->name);
    ebpfMonJsonAddText(&w->json, "time", text);
    ebpfMonJsonAddInteger(&w->json, "pid", w->ioc->pid);
    ebpfMonJsonAddText(&w->json, "version", w->ioc->version);
    ebpfMonJsonAddInteger(&w->json, "records", w->ioc->cat->count);
    ebpfMonJsonOpenObject(&w->json, "variables");
    ebpfMonInventoryReadVariables(w->ioc, variableNames, "", sink);
    ebpfMonJsonCloseObject(&w->json);
    endLine(w);
}

/* 0; 1: this IOC cannot be read, and the file has no line of it; -1: the file cannot be written. */
static int writeIoc(fileWriter *w, const ebpfMonInventoryIoc *ioc, char *why, size_t size)
{
    const ebpfMonInventorySink sink = { addVariable, addRecord, w };
    long begin = ftell(w->file);
    char reason[120];
    unsigned before = w->records;

    w->ioc = ioc;
    addIoc(w, &sink);
    if (!w->isBad && ebpfMonInventoryReadRecords(ioc, fieldNames, w->worker, &sink, reason, sizeof(reason)) &&
        !w->isBad) {
        snprintf(why, size, "IOC %s is not in the file: %s", ioc->name, reason);
        w->records = before;
        return fflush(w->file) || ftruncate(fileno(w->file), begin) || fseek(w->file, begin, SEEK_SET) ? -1 : 1;
    }
    if (w->isBad)
        snprintf(why, size, "%s", errno ? strerror(errno) : "out of memory");
    return w->isBad ? -1 : 0;
}

static int writeAll(fileWriter *w, ebpfMonTargets *targets, const char *pattern, ebpfMonInventoryCount *count,
                    char *why, size_t size)
{
    unsigned iocs = 0;
    ebpfMonInventoryIoc *list = ebpfMonIocListTake(targets, NULL, &iocs);
    int status = 0;

    for (unsigned i = 0; i < iocs; i++) {
        if (status >= 0 && epicsStrGlobMatch(list[i].name, pattern)) {
            status = writeIoc(w, &list[i], why, size);
            count->iocs += status == 0;
            count->failed += status == 1;
        }
        ebpfMonCatalogueRelease(list[i].cat);
    }
    free(list);
    count->records = w->records;
    return status < 0 ? -1 : 0;
}

/* Makes a new file. If there is one already (somebody may have made a link to another file), it is removed, and never
 * written to. */
static FILE *makeFile(const char *path)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(path, flags, 0640);
    FILE *file;

    if (fd < 0 && errno == EEXIST && unlink(path) == 0)
        fd = open(path, flags, 0640);
    file = fd < 0 ? NULL : fdopen(fd, "w");
    if (fd >= 0 && !file)
        close(fd);
    return file;
}

int ebpfMonInventoryFileWrite(ebpfMonTargets *targets, const char *path, const char *pattern, ebpfMonWorker *worker,
                              ebpfMonInventoryCount *count, char *why, size_t size)
{
    fileWriter w = { .line = malloc(LINE_BYTES), .worker = worker };
    char temporary[1024];
    int status = -1;

    memset(count, 0, sizeof(*count));
    why[0] = 0;
    errno = 0;
    if ((size_t)snprintf(temporary, sizeof(temporary), "%s.new", path) < sizeof(temporary) && w.line)
        w.file = makeFile(temporary);
    if (!w.file) {
        snprintf(why, size, "%s", errno ? strerror(errno) : "the path is too long, or there is no memory");
        free(w.line);
        return -1;
    }
    status = writeAll(&w, targets, pattern, count, why, size);
    if (fclose(w.file) && status == 0) {
        snprintf(why, size, "%s", strerror(errno));
        status = -1;
    }
    if (status == 0 && rename(temporary, path)) {
        snprintf(why, size, "%s", strerror(errno));
        status = -1;
    }
    if (status)
        unlink(temporary);
    ebpfMonJsonFree(&w.json);
    free(w.line);
    return status;
}
