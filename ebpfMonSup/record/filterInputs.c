/* SPDX-License-Identifier: BSD-3-Clause */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <aSubRecord.h>
#include <dbAccess.h>
#include <dbConvertFast.h>
#include <dbEvent.h>
#include <dbFldTypes.h>
#include <epicsStdlib.h>
#include <recGbl.h>

#include "access/guard.h"
#include "record/filterInputs.h"

enum inputKind { ofPattern, ofLevel, ofNumber, ofCount };

#define INPUT(name, kind, member) \
    { name, kind, offsetof(ebpfMonFilter, member), sizeof(((ebpfMonFilter *)NULL)->member) }

static const struct {
    const char *name;
    enum inputKind kind;
    size_t at, size; /* in ebpfMonFilter */
} input[EBPFMON_FILTER_INPUTS] = {
    INPUT("IOC", ofPattern, ioc),        INPUT("record", ofPattern, record),      INPUT("field", ofPattern, field),
    INPUT("host", ofPattern, host),      INPUT("user", ofPattern, user),          INPUT("level", ofLevel, level),
    INPUT("slow limit", ofNumber, slowUs), INPUT("sampling", ofCount, sample),    INPUT("budget", ofNumber, budget),
    INPUT("timed part", ofNumber, timed)
};

static int setPattern(char *pattern, unsigned in, const char *from, size_t len, char *why, size_t size)
{
    if (len >= EBPFMON_PATTERN_SIZE) { /* do not cut it: it would match other names */
        snprintf(why, size, "%s pattern is longer than %d characters: shorten it with *", input[in].name,
                 EBPFMON_PATTERN_SIZE - 1);
        return -1;
    }
    memcpy(pattern, from, len);
    pattern[len] = 0;
    return 0;
}

static int readNumber(void *to, unsigned in, double value, char *why, size_t size)
{
    switch (input[in].kind) {
    case ofLevel:
        if (value < 0 || value >= ebpfMonLevelCount) {
            snprintf(why, size, "level %g does not exist: 0 (off) to %d (%s)", value, ebpfMonLevelCount - 1,
                     ebpfMonLevelName(ebpfMonLevelCount - 1));
            return -1;
        }
        *(ebpfMonLevel *)to = (ebpfMonLevel)value;
        return 0;
    case ofCount:
        if (!(value >= 0 && value <= 1e9)) {
            snprintf(why, size, "sampling: one chain in %g is not possible: give 1 to 1000000000", value);
            return -1;
        }
        *(unsigned *)to = (unsigned)value;
        return 0;
    default:
        *(double *)to = value;
        return 0;
    }
}

/* Nonzero: it is the name of a level. */
static int readLevel(void *to, const char *name)
{
    int level = ebpfMonLevelParse(name);

    if (level >= 0)
        *(ebpfMonLevel *)to = (ebpfMonLevel)level;
    return level >= 0;
}

static int readInput(const aSubRecord *prec, unsigned in, void *to, char *why, size_t size)
{
    epicsEnum16 type = (&prec->fta)[in];
    const char *from = (&prec->a)[in];
    double value;

    if (input[in].kind == ofPattern) {
        if (type == DBF_STRING || type == DBF_CHAR || type == DBF_UCHAR)
            return setPattern(to, in, from, strnlen(from, type == DBF_STRING ? MAX_STRING_SIZE : (&prec->nea)[in]), why,
                              size);
        snprintf(why, size, "%s pattern: FT%c must be STRING or CHAR", input[in].name, 'A' + in);
        return -1;
    }
    if (input[in].kind == ofLevel && type == DBF_STRING && readLevel(to, from))
        return 0;
    if (type <= DBF_ENUM && dbFastGetConvertRoutine[type][DBR_DOUBLE](from, &value, NULL) == 0 && isfinite(value))
        return readNumber(to, in, value, why, size);
    snprintf(why, size, "%s is not a number: give one", input[in].name);
    return -1;
}

int ebpfMonFilterReadInputs(const aSubRecord *prec, ebpfMonFilter *filter, char *why, size_t size)
{
    for (unsigned in = 0; in < EBPFMON_FILTER_INPUTS; in++)
        if (readInput(prec, in, (char *)filter + input[in].at, why, size))
            return -1;
    return 0;
}

int ebpfMonFilterParse(ebpfMonFilter *filter, unsigned in, const char *value, char *why, size_t size)
{
    void *to = (char *)filter + input[in].at;
    double number;

    if (input[in].kind == ofPattern)
        return setPattern(to, in, value, strlen(value), why, size);
    if (input[in].kind == ofLevel) {
        if (readLevel(to, value))
            return 0;
        snprintf(why, size, "there is no level \"%s\": off, puts, counts, chains or trace", value);
        return -1;
    }
    if (epicsParseDouble(value, &number, NULL) == 0)
        return readNumber(to, in, number, why, size);
    snprintf(why, size, "%s \"%s\" is not a number", input[in].name, value);
    return -1;
}

void ebpfMonFilterCopyInputs(ebpfMonFilter *filter, const ebpfMonFilter *from, unsigned inputs)
{
    for (unsigned in = 0; in < EBPFMON_FILTER_INPUTS; in++)
        if (inputs & 1u << in)
            memcpy((char *)filter + input[in].at, (const char *)from + input[in].at, input[in].size);
}

/* Gives the source record of one input the time stamp of now and takes the alarm UDF away, which Base would take away
 * when the record processes. Posts monitors. */
static void stampSource(const DBADDR *source)
{
    dbCommon *prec = source->precord;

    prec->udf = FALSE;
    ebpfMonGuardKeep(prec);
    db_post_events(prec, source->pfield, recGblResetAlarms(prec) | DBE_VALUE | DBE_LOG);
}

/* Writes the source record of one input without processing it, and posts monitors. The caller holds its lock: a
 * database link makes one lock set of the records at both ends. */
static void writeSource(const aSubRecord *prec, int in, short type, const void *value, long count)
{
    const DBLINK *link = &(&prec->inpa)[in];
    DBADDR source;

    if (link->type != DB_LINK || dbNameToAddr(link->value.pv_link.pvname, &source))
        return;
    if (source.dbr_field_type == DBR_CHAR || type != DBR_CHAR)
        dbPut(&source, type, value, count);
    else
        dbPut(&source, DBR_STRING, value, 1);
    stampSource(&source);
}

void ebpfMonFilterCheckInputs(aSubRecord *prec)
{
    for (int in = 0; in < EBPFMON_FILTER_INPUTS; in++) {
        DBLINK *link = &(&prec->inpa)[in];
        long count = (&prec->noa)[in];
        DBADDR source;

        if (link->type == DB_LINK && !dbNameToAddr(link->value.pv_link.pvname, &source) &&
            ebpfMonGuardSetBack(source.precord) &&
            !dbGetLink(link, (&prec->fta)[in], (&prec->a)[in], NULL, &count))
            (&prec->nea)[in] = (epicsUInt32)count;
    }
}

/* A record that has not processed has the time stamp 0. Archivers drop it, because it is before the EPICS epoch. */
void ebpfMonFilterStampInputs(const aSubRecord *prec)
{
    for (int in = 0; in < EBPFMON_FILTER_INPUTS; in++) {
        const DBLINK *link = &(&prec->inpa)[in];
        DBADDR source;

        if (link->type != DB_LINK || dbNameToAddr(link->value.pv_link.pvname, &source) ||
            source.precord->time.secPastEpoch)
            continue;
        stampSource(&source);
    }
}

void ebpfMonFilterWriteInputs(const aSubRecord *prec, const ebpfMonFilter *filter)
{
    static const short type[] = { [ofPattern] = DBR_CHAR, [ofLevel] = DBR_LONG, [ofNumber] = DBR_DOUBLE,
                                  [ofCount] = DBR_LONG };

    for (int in = 0; in < EBPFMON_FILTER_INPUTS; in++) {
        const char *value = (const char *)filter + input[in].at;

        writeSource(prec, in, type[input[in].kind], value,
                    input[in].kind == ofPattern ? (long)strlen(value) + 1 : 1);
    }
}
