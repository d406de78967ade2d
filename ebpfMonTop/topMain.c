/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsTime.h>
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "topPage.h"
#include "topScreen.h"

/* --- without a terminal --- */

/* Prints pages for scripts: plain text without escape sequences. */

#define LIBCA_MS 100 /* libca must be called so often, because it does not always make its file readable */

/* Takes values for so many seconds; "untilReady": returns earlier when all are there. Nonzero: all are there. */
static int readValues(topData *data, double seconds, int untilReady)
{
    epicsTimeStamp begin, now;
    double left = seconds;

    epicsTimeGetCurrent(&begin);
    do {
        struct pollfd file = {.fd = data->pvs.file, .events = POLLIN};

        if (topDataRead(data) && untilReady)
            return 1;
        poll(&file, 1, left * 1e3 < LIBCA_MS ? (int)(left * 1e3) + 1 : LIBCA_MS);
        epicsTimeGetCurrent(&now);
        left = seconds - epicsTimeDiffInSeconds(&now, &begin);
    } while (left > 0);
    return 0;
}

/* Prints "count" pages, one each "seconds". For each page it waits until all values are there, but at most
 * "patience" seconds. "rows": rows of each table at most. Returns the exit code: 0, or 1: the monitor did not
 * answer. */
static int topBatchRun(topData *data, topLook *look, unsigned count, double seconds, double patience, unsigned rows)
{
    topSheet sheet = {0};
    int status = 0;

    for (unsigned i = 0; i < count; i++) {
        if (i)
            readValues(data, seconds, 0);
        readValues(data, patience, 1);
        status = !data->state->isConnected;
        if (!data->state->isKnown) {
            fprintf(stderr, "ebpfMonTop: no answer from %sSTATE. Check the prefix, whether the monitor runs, and "
                    "whether EPICS_CA_ADDR_LIST has its host\n", data->pvs.prefix);
            continue;
        }
        topPageMake(data, look, TOP_ALL_LINES, rows, &sheet);
        if (i)
            printf("\n");
        topSheetPrint(&sheet, stdout);
        if (fflush(stdout))
            break; /* the reader has closed the pipe */
    }
    topSheetFree(&sheet);
    return status;
}

/* --- the program --- */

/* ebpfMonTop shows in a terminal what a monitor sees. It is a Channel Access client: it uses only the PVs of the
 * monitor. */

typedef struct {
    int      isBatch;
    unsigned pages, rows;
    double   seconds, patience;
    topLook  look;
} options;

static void printUsage(FILE *out)
{
    fprintf(out,
        "ebpfMonTop [-1] [-n PAGES] [-d SECONDS] [-v VIEW] [-f TEXT] [-e RECORD] [-r ROWS] [-w SECONDS] PREFIX\n"
        "Shows a monitor. The names of its PVs begin with PREFIX, such as myhost:EBPF:\n"
        "  -1          prints one page as plain text, and ends\n"
        "  -n PAGES    prints so many pages as plain text, and ends\n"
        "  -d SECONDS  time between two pages (1)\n"
        "  -v VIEW     ");
    for (unsigned i = 0; i < topViews; i++)
        fprintf(out, "%s%s", i ? ", " : "", topViewSpecs[i].name);
    fprintf(out, "\n"
        "  -f TEXT     shows only rows that have this text, or match this pattern with * and ?\n"
        "  -e RECORD   shows one record: its counts, chains and puts\n"
        "  -r ROWS     rows of each table at most, when printed (10 in the overview, else 1000)\n"
        "  -w SECONDS  waits at most so long for values before it prints (5)\n"
        "  -h          this help\n"
        "In a terminal the key ? lists the keys. The exit code is 1 if the monitor does not answer.\n");
}

static int setOptionView(options *o, const char *name)
{
    for (unsigned i = 0; i < topViews; i++)
        if (strcmp(topViewSpecs[i].name, name) == 0) {
            o->look.view = i;
            return 0;
        }
    fprintf(stderr, "ebpfMonTop: there is no view %s; -h lists them\n", name);
    return -1;
}

static int setNumber(double *number, int option, const char *text, double least, double most)
{
    char *end;

    *number = strtod(text, &end);
    if (*text && !*end && *number >= least && *number <= most)
        return 0;
    fprintf(stderr, "ebpfMonTop: -%c %s is not a number from %g to %g\n", option, text, least, most);
    return -1;
}

static int setOptionText(char *to, size_t size, int option, const char *text)
{
    if (strlen(text) < size) {
        strcpy(to, text);
        return 0;
    }
    fprintf(stderr, "ebpfMonTop: -%c has more than %u characters\n", option, (unsigned)size - 1);
    return -1;
}

static int setOption(options *o, int option)
{
    double number;

    switch (option) {
    case '1': o->isBatch = 1; o->pages = 1; return 0;
    case 'n':
        if (setNumber(&number, option, optarg, 1, 1e9))
            return -1;
        o->isBatch = 1;
        o->pages = (unsigned)number;
        return 0;
    case 'd': return setNumber(&o->seconds, option, optarg, 0.05, 86400);
    case 'w': return setNumber(&o->patience, option, optarg, 0.05, 3600);
    case 'r':
        if (setNumber(&number, option, optarg, 1, 1000))
            return -1;
        o->rows = (unsigned)number;
        return 0;
    case 'v': return setOptionView(o, optarg);
    case 'f': return setOptionText(o->look.filter, sizeof(o->look.filter), option, optarg);
    case 'e': return setOptionText(o->look.record, sizeof(o->look.record), option, optarg);
    default:  return -1;
    }
}

/* Names and values may have any characters, so we need UTF-8. A terminal without UTF-8 shows some of them wrongly. */
static void chooseLocale(void)
{
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C.UTF-8");
}

int main(int argc, char *argv[])
{
    static topData data; /* static because it is too large for the stack */
    options o = {.pages = 1, .seconds = 1, .patience = 5};
    static const struct option longOptions[] = { { "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };
    int option, status = 1;

    chooseLocale();
    while ((option = getopt_long(argc, argv, "1n:d:v:f:e:r:w:h", longOptions, NULL)) != -1) {
        if (option == 'h') {
            printUsage(stdout);
            return 0;
        }
        if (setOption(&o, option)) {
            fprintf(stderr, "ebpfMonTop -h lists the options\n");
            return 2;
        }
    }
    if (argc - optind != 1 || !argv[optind][0]) {
        printUsage(stderr);
        return 2;
    }
    if (!o.isBatch && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))) {
        fprintf(stderr, "ebpfMonTop: this is not a terminal; use -1 to print one page\n");
        return 2;
    }
    if (!o.rows)
        o.rows = o.look.view == topViewOverview && !o.look.record[0] ? 10 : 1000;
    if (topDataOpen(&data, argv[optind]) == 0)
        status = o.isBatch ? topBatchRun(&data, &o.look, o.pages, o.seconds, o.patience, o.rows)
                           : topScreenRun(&data, &o.look, o.seconds);
    topDataClose(&data);
    return status;
}
