/* SPDX-License-Identifier: BSD-3-Clause */
/* The program ebpfMonHistory: asks a file of the history, also while no monitor runs, and on another host. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "history/historyReport.h"
#include "history/historyWhy.h"

#define FILE_DEFAULT "/var/lib/ebpfmon/history.sqlite"
#define ROWS 100

static const char usage[] =
    "ebpfMonHistory [OPTIONS] [PV]     what happened: puts of people, events of IOCs, gaps\n"
    "ebpfMonHistory why PV [TIME]      what led to the value that PV had then, and what followed; as text, with\n"
    "                                  --json, or with --otlp as a trace for collectors and Jaeger\n"
    "ebpfMonHistory report FROM TO     one page about this time, for a logbook: Markdown, or with --html\n"
    "                                  a page with pictures\n"
    "  PV                 only puts to PVs that match (* and ?)\n"
    "  -f, --from TIME    -2h, -30m, -3d, today, yesterday, 03:10, \"2026-11-28 03:10:05\", 2026-11-28T03:10:05Z\n"
    "                     (UTC), 03:10..03:20; default: the begin\n"
    "  -t, --to TIME      default: now\n"
    "  -u, --user NAME    -H, --host NAME    -i, --ioc NAME    -v, --value TEXT: only those that match\n"
    "  -p, --process TEXT only puts in whose writer or way it stands: a program, \"pid 4711\", an address\n"
    "  -k, --kind KIND    put, event, chain, minute, client, start, gap, lost; of a frozen file also\n"
    "                     ioc, record, variables\n"
    "  -x, --unexpected   only puts that the rules did not expect\n"
    "  -e, --failed       only puts that were denied, or wrote nothing for another reason\n"
    "  -a, --automatic    also what IOCs wrote by themselves\n"
    "  -n, --number N     the newest N rows (default 100; 0: all)\n"
    "  -d, --file FILE    the file (default " FILE_DEFAULT ")\n"
    "  --also FILE        why only: the file of another host, up to seven times\n"
    "  --json, --csv, --caputlog    for programs; times are UTC in the first two\n"
    "  -r, --report       as report, with -f and -t\n"
    "Exit code: 0, rows were found; 1, none; 2, the question or the file is wrong.\n";

static const struct option options[] = {
    {"from", required_argument, NULL, 'f'}, {"to", required_argument, NULL, 't'},
    {"user", required_argument, NULL, 'u'}, {"host", required_argument, NULL, 'H'},
    {"ioc", required_argument, NULL, 'i'}, {"process", required_argument, NULL, 'p'},
    {"value", required_argument, NULL, 'v'}, {"kind", required_argument, NULL, 'k'},
    {"unexpected", no_argument, NULL, 'x'}, {"automatic", no_argument, NULL, 'a'}, {"failed", no_argument, NULL, 'e'},
    {"number", required_argument, NULL, 'n'}, {"file", required_argument, NULL, 'd'}, {"json", no_argument, NULL, 'J'},
    {"report", no_argument, NULL, 'r'}, {"csv", no_argument, NULL, 'C'},
    {"html", no_argument, NULL, 'M'},
    {"caputlog", no_argument, NULL, 'P'}, {"also", required_argument, NULL, 'A'},
    {"otlp", no_argument, NULL, 'O'}, {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}
};

static int64_t getNow(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* "to" NULL: no second time may stand behind dots. 0, or -1: a message was printed. */
static int readTime(const char *text, int64_t *time, int64_t *to)
{
    if ((to ? ebpfMonHistoryParseRange(text, getNow(), time, to) :
         ebpfMonHistoryParseTime(text, getNow(), 1, time)) == 0)
        return 0;
    fprintf(stderr, "ebpfMonHistory: \"%s\" is no time. Give one as -2h, yesterday, 03:10 or \"2026-11-28 03:10\"\n",
            text);
    return -1;
}

/* 0, or -1: a message was printed. */
static int takeOption(int option, ebpfMonHistoryQuestion *q)
{
    char *end = "";

    switch (option) {
    case 'f': return readTime(optarg, &q->from, &q->to);
    case 't': return readTime(optarg, &q->to, NULL);
    case 'p': q->process = optarg; return 0;
    case 'u': q->user = optarg; return 0;
    case 'H': q->host = optarg; return 0;
    case 'i': q->ioc = optarg; return 0;
    case 'v': q->value = optarg; return 0;
    case 'k': q->kind = optarg; return 0;
    case 'r': q->isReport = 1; return 0;
    case 'x': q->unexpected = 1; return 0;
    case 'e': q->failed = 1; return 0;
    case 'a': q->automatic = 1; return 0;
    case 'd': q->file = optarg; return 0;
    case 'J': q->form = ebpfMonHistoryJson; return 0;
    case 'O': q->form = ebpfMonHistoryOtlp; return 0;
    case 'M': q->form = ebpfMonHistoryHtml; return 0;
    case 'C': q->form = ebpfMonHistoryCsv; return 0;
    case 'P': q->form = ebpfMonHistoryCaPutLog; q->kind = "put"; return 0;
    case 'A':
        for (int i = 0; i < EBPFMON_HISTORY_ALSO; i++)
            if (!q->also[i]) {
                q->also[i] = optarg;
                return 0;
            }
        fputs("ebpfMonHistory: too many files\n", stderr);
        return -1;
    case 'n':
        q->most = (unsigned)strtoul(optarg, &end, 10);
        if (optarg[0] >= '0' && optarg[0] <= '9' && !*end)
            return 0;
        fprintf(stderr, "ebpfMonHistory: \"%s\" is no number of rows\n", optarg);
        return -1;
    default:
        fputs(usage, stderr);
        return -1;
    }
}

/* About the last day, if nothing else is asked for. As ebpfMonHistoryAsk. */
static long writeReport(ebpfMonHistoryQuestion *q, char *why, size_t size)
{
    if (!q->to)
        q->to = getNow();
    if (!q->from)
        q->from = q->to - 86400ll * 1000000000;
    return ebpfMonHistoryWriteReport(q, stdout, why, size) ? -1 : 1;
}

/* The words of a command. A time such as -2h is no option, so getopt must not see it. */
typedef struct {
    const char *name;      /* "why", "report"; NULL: neither */
    const char *word[2];   /* NULL: not given */
} command;

/* Nonzero: the next argument belongs to this option. */
static int takesNext(const char *arg)
{
    if (arg[0] != '-' || arg[1] == 0)
        return 0;
    if (arg[1] != '-')
        return arg[2] == 0 && strchr("ftuHivkpnd", arg[1]) != NULL;
    for (const struct option *o = options; o->name; o++)
        if (strcmp(o->name, arg + 2) == 0)
            return o->has_arg == required_argument;
    return 0;
}

/* Takes the command and its words out of the arguments. Returns how many are left. */
static int takeCommand(int argc, char *argv[], command *c)
{
    int at = 1, left, words = 0;

    while (at < argc && strcmp(argv[at], "why") != 0 && strcmp(argv[at], "report") != 0)
        at++;
    if (at == argc || takesNext(argv[at - 1]))
        return argc;
    c->name = argv[at];
    left = at;
    for (at++; at < argc; at++)
        if (words < 2 && !takesNext(argv[at - 1]) &&
            (argv[at][0] != '-' || (argv[at][1] >= '0' && argv[at][1] <= '9')))
            c->word[words++] = argv[at];
        else
            argv[left++] = argv[at];
    argv[left] = NULL;
    return left;
}

static int isReport(const command *c)
{
    return c->name && strcmp(c->name, "report") == 0;
}

/* As ebpfMonHistoryAsk. */
static long runCommand(const command *c, ebpfMonHistoryQuestion *q, char *why, size_t size)
{
    if (isReport(c))
        return writeReport(q, why, size);
    q->pv = c->word[0];
    if (q->pv)
        return ebpfMonHistoryWhy(q, c->word[1], getNow(), stdout, why, size);
    snprintf(why, size, "give a PV behind why");
    return -1;
}

int main(int argc, char *argv[])
{
    ebpfMonHistoryQuestion q = { .file = FILE_DEFAULT, .most = ROWS };
    command c = { .name = NULL };
    const char *end = NULL;
    char why[300];
    int option;
    long rows;

    argc = takeCommand(argc, argv, &c);
    while ((option = getopt_long(argc, argv, "f:t:u:H:i:v:k:p:xean:d:hr", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return 0;
        }
        if (takeOption(option, &q))
            return 2;
        end = option == 't' ? optarg : end;
    }
    if (optind < argc)
        q.pv = argv[optind++];
    if (optind < argc || (c.name && q.pv)) {
        fprintf(stderr, "ebpfMonHistory: give one PV, with * for several. The shell wants '*' in quotes\n");
        return 2;
    }
    if (q.also[0] && (!c.name || isReport(&c))) {
        fprintf(stderr, "ebpfMonHistory: --also is for why\n");
        return 2;
    }
    if (isReport(&c) &&
        ((c.word[0] && readTime(c.word[0], &q.from, &q.to)) || (c.word[1] && readTime(c.word[1], &q.to, NULL))))
        return 2;
    end = isReport(&c) && c.word[1] ? c.word[1] : end;
    if (end)
        ebpfMonHistoryParseEnd(end, getNow(), q.from, &q.to);
    if (q.from && q.to && q.from > q.to) {
        fprintf(stderr, "ebpfMonHistory: the time from which to ask is after the one to which\n");
        return 2;
    }
    if (q.from > getNow())
        fprintf(stderr, "ebpfMonHistory: the time about which you ask has not come yet\n");
    if (c.name)
        rows = runCommand(&c, &q, why, sizeof(why));
    else if (q.isReport)
        rows = writeReport(&q, why, sizeof(why));
    else
        rows = ebpfMonHistoryAsk(&q, stdout, why, sizeof(why));
    if (rows < 0)
        fprintf(stderr, "ebpfMonHistory: %s: %s\n", q.file, why);
    return rows < 0 ? 2 : rows == 0;
}
