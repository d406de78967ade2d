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

#define PATTERNS 5

enum { inLevel = PATTERNS, inSlow, inSample, inBudget, inTimed };

static const char * const inputName[EBPFMON_FILTER_INPUTS] = {
    "IOC", "record", "field", "host", "user", "level", "slow limit", "sampling", "budget", "timed part"
};
static const size_t patternAt[PATTERNS] = {
    offsetof(ebpfMonFilter, ioc), offsetof(ebpfMonFilter, record), offsetof(ebpfMonFilter, field),
    offsetof(ebpfMonFilter, host), offsetof(ebpfMonFilter, user)
};

static int readPattern(const aSubRecord *prec, int in, char *pattern, char *why, size_t size)
{
    epicsEnum16 type = (&prec->fta)[in];
    const char *from = (&prec->a)[in];
    size_t len;

    if (type != DBF_STRING && type != DBF_CHAR && type != DBF_UCHAR) {
        snprintf(why, size, "%s pattern: FT%c must be STRING or CHAR", inputName[in], 'A' + in);
        return -1;
    }
    len = strnlen(from, type == DBF_STRING ? MAX_STRING_SIZE : (&prec->nea)[in]);
    if (len >= EBPFMON_PATTERN_SIZE) { /* do not cut it: it would match other names */
        snprintf(why, size, "%s pattern is longer than %d characters: shorten it with *", inputName[in],
                 EBPFMON_PATTERN_SIZE - 1);
        return -1;
    }
    memcpy(pattern, from, len);
    pattern[len] = 0;
    return 0;
}

static int readNumber(const aSubRecord *prec, int in, double *value, char *why, size_t size)
{
    epicsEnum16 type = (&prec->fta)[in];

    if (type <= DBF_ENUM &&
        dbFastGetConvertRoutine[type][DBR_DOUBLE]((&prec->a)[in], value, NULL) == 0 && isfinite(*value))
        return 0;
    snprintf(why, size, "%s is not a number: give one", inputName[in]);
    return -1;
}

static int readLevel(const aSubRecord *prec, ebpfMonLevel *level, char *why, size_t size)
{
    const char *name = (&prec->a)[inLevel];
    double value;
    int known;

    if ((&prec->fta)[inLevel] == DBF_STRING && (known = ebpfMonLevelParse(name)) >= 0) {
        *level = (ebpfMonLevel)known;
        return 0;
    }
    if (readNumber(prec, inLevel, &value, why, size))
        return -1;
    if (value < 0 || value >= ebpfMonLevelCount) {
        snprintf(why, size, "level %g does not exist: 0 (off) to %d (%s)", value, ebpfMonLevelCount - 1,
                 ebpfMonLevelName(ebpfMonLevelCount - 1));
        return -1;
    }
    *level = (ebpfMonLevel)value;
    return 0;
}

int ebpfMonFilterReadInputs(const aSubRecord *prec, ebpfMonFilter *filter, char *why, size_t size)
{
    double sample;
    int in;

    for (in = 0; in < PATTERNS; in++)
        if (readPattern(prec, in, (char *)filter + patternAt[in], why, size))
            return -1;
    if (readLevel(prec, &filter->level, why, size) ||
        readNumber(prec, inSlow, &filter->slowUs, why, size) ||
        readNumber(prec, inSample, &sample, why, size) ||
        readNumber(prec, inBudget, &filter->budget, why, size) ||
        readNumber(prec, inTimed, &filter->timed, why, size))
        return -1;
    if (sample < 0 || sample > 1e9) {
        snprintf(why, size, "sampling: one chain in %g is not possible: give 1 to 1000000000", sample);
        return -1;
    }
    filter->sample = (unsigned)sample;
    return 0;
}

static int parseNumber(double *to, const char *value, const char *what, char *why, size_t size)
{
    if (epicsParseDouble(value, to, NULL) == 0)
        return 0;
    snprintf(why, size, "%s \"%s\" is not a number", what, value);
    return -1;
}

int ebpfMonFilterParse(ebpfMonFilter *filter, unsigned in, const char *value, char *why, size_t size)
{
    char *pattern = (char *)filter + (in < PATTERNS ? patternAt[in] : 0);
    double sample;
    int level;

    switch (in) {
    case inLevel:
        level = ebpfMonLevelParse(value);
        if (level < 0) {
            snprintf(why, size, "there is no level \"%s\": off, puts, counts, chains or trace", value);
            return -1;
        }
        filter->level = (ebpfMonLevel)level;
        return 0;
    case inSlow:
        return parseNumber(&filter->slowUs, value, inputName[in], why, size);
    case inSample:
        if (parseNumber(&sample, value, inputName[in], why, size))
            return -1;
        if (!(sample >= 0 && sample <= 1e9)) {
            snprintf(why, size, "sampling: one chain in %g is not possible: give 1 to 1000000000", sample);
            return -1;
        }
        filter->sample = (unsigned)sample;
        return 0;
    case inBudget:
        return parseNumber(&filter->budget, value, inputName[in], why, size);
    case inTimed:
        return parseNumber(&filter->timed, value, inputName[in], why, size);
    default:
        if (strlen(value) >= EBPFMON_PATTERN_SIZE) {
            snprintf(why, size, "%s pattern is longer than %d characters: shorten it with *", inputName[in],
                     EBPFMON_PATTERN_SIZE - 1);
            return -1;
        }
        strcpy(pattern, value);
        return 0;
    }
}

void ebpfMonFilterCopyInputs(ebpfMonFilter *filter, const ebpfMonFilter *from, unsigned inputs)
{
    int in;

    for (in = 0; in < PATTERNS; in++)
        if (inputs & 1u << in)
            memcpy((char *)filter + patternAt[in], (const char *)from + patternAt[in], EBPFMON_PATTERN_SIZE);
    if (inputs & 1u << inLevel)
        filter->level = from->level;
    if (inputs & 1u << inSlow)
        filter->slowUs = from->slowUs;
    if (inputs & 1u << inSample)
        filter->sample = from->sample;
    if (inputs & 1u << inBudget)
        filter->budget = from->budget;
    if (inputs & 1u << inTimed)
        filter->timed = from->timed;
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
    epicsInt32 level = filter->level, sample = (epicsInt32)filter->sample;
    int in;

    for (in = 0; in < PATTERNS; in++) {
        const char *pattern = (const char *)filter + patternAt[in];

        writeSource(prec, in, DBR_CHAR, pattern, (long)strlen(pattern) + 1);
    }
    writeSource(prec, inLevel, DBR_LONG, &level, 1);
    writeSource(prec, inSlow, DBR_DOUBLE, &filter->slowUs, 1);
    writeSource(prec, inSample, DBR_LONG, &sample, 1);
    writeSource(prec, inBudget, DBR_DOUBLE, &filter->budget, 1);
    writeSource(prec, inTimed, DBR_DOUBLE, &filter->timed, 1);
}
