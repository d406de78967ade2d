/* SPDX-License-Identifier: BSD-3-Clause */
#define _XOPEN_SOURCE_EXTENDED 1 /* the wide ncurses */
#include <ctype.h>
#include <epicsStdio.h>
#include <epicsTime.h>
#include <errno.h>
#include <fcntl.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "topScreen.h"

/* --- keys --- */

/* Does what a key means. One thread. */

/* Keys that are not characters. The screen translates the keys of ncurses. */
enum { topKeyUp = 0x1000, topKeyDown, topKeyPageUp, topKeyPageDown, topKeyHome, topKeyEnd, topKeyEnter, topKeyEscape,
       topKeyErase };

typedef struct {
    topLook *look;
    topData *data;
    char    *typing;     /* the user types this text: the filter, or "question"; NULL: none … */
    size_t   room;       /* … of so many bytes */
    char     question[200]; /* for WHY_PV */
    char     message[120]; /* for the last line of the screen; empty: none */
    int      isEnding;   /* the user wants to end */
} topKeys;

#define ROWS_MAX 400

static void moveTo(topKeys *keys, long to)
{
    topLook *look = keys->look;
    unsigned rows[ROWS_MAX], count;

    if (!topPageGetFocus(keys->data, look, rows, ROWS_MAX, &count)) {
        look->scroll = to > 0 ? (unsigned)to : 0; /* a page of text; topPageMake knows its end */
        return;
    }
    if (to >= (long)count)
        to = (long)count - 1;
    look->cursor = to > 0 ? (unsigned)to : 0;
}

static long getCursor(const topKeys *keys)
{
    unsigned rows[ROWS_MAX], count;

    return topPageGetFocus(keys->data, keys->look, rows, ROWS_MAX, &count) ? keys->look->cursor : keys->look->scroll;
}

/* Copies the name of the record in the row of the cursor. 0, or -1: there is none, and a message says so. */
static int getRecord(topKeys *keys, char *name, size_t size)
{
    unsigned rows[ROWS_MAX], count;
    const topTable *table = topPageGetFocus(keys->data, keys->look, rows, ROWS_MAX, &count);

    name[0] = 0;
    if (table && keys->look->cursor < count)
        topTableGetRecord(table, rows[keys->look->cursor], name, size);
    if (!name[0])
        epicsSnprintf(keys->message, sizeof(keys->message), "this row has no record: Tab goes to another table");
    return name[0] ? 0 : -1;
}

static void enterRecord(topKeys *keys)
{
    char name[sizeof(keys->look->record)];

    if (keys->look->record[0] || getRecord(keys, name, sizeof(name)))
        return;
    strcpy(keys->look->record, name);
    keys->look->focus = keys->look->cursor = 0;
}

static void goBack(topKeys *keys)
{
    topLook *look = keys->look;

    if (look->isHelp)
        look->isHelp = 0;
    else if (look->record[0]) {
        look->record[0] = 0;
        look->focus = 0; /* the view may have fewer tables than the page of a record */
    } else
        look->filter[0] = 0;
    look->cursor = look->scroll = 0;
}

static void setView(topKeys *keys, unsigned view)
{
    topLook *look = keys->look;

    look->view = view;
    look->record[0] = 0;
    look->focus = look->cursor = look->scroll = 0;
    look->isHelp = 0;
}

static void focusNextTable(topKeys *keys)
{
    int tables[TOP_VIEW_TABLES];
    unsigned count = topPageListTables(keys->look, tables) + (topPageHasTexts(keys->look) != 0);

    keys->look->focus = count ? (keys->look->focus + 1) % count : 0;
    keys->look->cursor = keys->look->scroll = 0;
}

static topTable *getTable(topKeys *keys)
{
    int tables[TOP_VIEW_TABLES];
    unsigned count = topPageListTables(keys->look, tables);

    return keys->look->focus < count ? &keys->data->table[tables[keys->look->focus]] : NULL;
}

static void chooseSorting(topKeys *keys, int step)
{
    topTable *table = getTable(keys);

    if (!table)
        return;
    if (!step) {
        table->sortBy = -1;
        table->isReversed = 0;
        return;
    }
    do {
        table->sortBy += step;
        if (table->sortBy < 0)
            table->sortBy = (int)table->columns - 1;
        if (table->sortBy >= (int)table->columns)
            table->sortBy = 0;
    } while (table->spec->column[table->sortBy].format == topAsFlag);
}

static void chooseHistogram(topKeys *keys, int ofAll)
{
    char name[sizeof(keys->look->record)] = "";

    if (!ofAll && keys->look->record[0])
        strcpy(name, keys->look->record);
    else if (!ofAll && getRecord(keys, name, sizeof(name)))
        return;
    if (topTableIsCut(name))
        epicsSnprintf(keys->message, sizeof(keys->message),
                      "this name is cut: start ebpfMonTop -e RECORD with its whole name, and press h there");
    else if (topPvPutText(keys->data->root, name))
        epicsSnprintf(keys->message, sizeof(keys->message),
                      "you may not write %sCHAIN_HIST_ROOT, so the histogram does not change", keys->data->pvs.prefix);
}

static void beginTyping(topKeys *keys, char *text, size_t room)
{
    keys->typing = text;
    keys->room = room;
}

/* The question begins with the record of the row or page. */
static void beginQuestion(topKeys *keys)
{
    char name[sizeof(keys->look->record)];

    strcpy(name, keys->look->record);
    if (!name[0])
        getRecord(keys, name, sizeof(name));
    keys->message[0] = 0; /* there need not be one */
    epicsSnprintf(keys->question, sizeof(keys->question), "%s", topTableIsCut(name) ? "" : name);
    setView(keys, topViewWhy);
    beginTyping(keys, keys->question, sizeof(keys->question));
}

static void askWhy(topKeys *keys)
{
    if (keys->question[0] && topPvPutText(keys->data->text[topQuestion], keys->question))
        epicsSnprintf(keys->message, sizeof(keys->message), "you may not write %sWHY_PV: see ebpfMonOperators",
                      keys->data->pvs.prefix);
}

static void typeText(topKeys *keys, int key)
{
    char *text = keys->typing;
    size_t length = strlen(text);

    if (key == topKeyEnter || key == topKeyEscape) {
        keys->typing = NULL;
        if (key == topKeyEscape)
            text[0] = 0;
        else if (text == keys->question)
            askWhy(keys);
    } else if (key == topKeyErase && length)
        text[length - 1] = 0;
    else if (key < 0x100 && isprint(key) && length + 1 < keys->room) {
        text[length] = (char)key;
        text[length + 1] = 0;
    }
    keys->look->cursor = 0;
}

static int moveCursor(topKeys *keys, int key, unsigned page)
{
    long place = getCursor(keys);

    switch (key) {
    case topKeyUp:       moveTo(keys, place - 1); return 1;
    case topKeyDown:     moveTo(keys, place + 1); return 1;
    case topKeyPageUp:   moveTo(keys, place - (long)page / 2); return 1;
    case topKeyPageDown: moveTo(keys, place + (long)page / 2); return 1;
    case topKeyHome:     moveTo(keys, 0); return 1;
    case topKeyEnd:      moveTo(keys, TOP_ALL_LINES); return 1;
    default:             return 0;
    }
}

static int runKey(topKeys *keys, int key)
{
    topTable *table;

    switch (key) {
    case 'q': keys->isEnding = 1; return 1;
    case '\t': focusNextTable(keys); return 1;
    case topKeyEnter: enterRecord(keys); return 1;
    case topKeyEscape:
    case topKeyErase: goBack(keys); return 1;
    case '<': chooseSorting(keys, -1); return 1;
    case '>': chooseSorting(keys, 1); return 1;
    case '=': chooseSorting(keys, 0); return 1;
    case 'r':
        if ((table = getTable(keys)) != NULL)
            table->isReversed = !table->isReversed;
        return 1;
    case '/': beginTyping(keys, keys->look->filter, sizeof(keys->look->filter)); return 1;
    case 'x': beginQuestion(keys); return 1;
    case 'h': chooseHistogram(keys, 0); return 1;
    case 'H': chooseHistogram(keys, 1); return 1;
    case '?':
        keys->look->isHelp = !keys->look->isHelp;
        keys->look->scroll = 0;
        return 1;
    case ' ':
        keys->look->isPaused = !keys->look->isPaused;
        topPvsPause(&keys->data->pvs, keys->look->isPaused);
        return 1;
    default: return 0;
    }
}

/* "key": a character or a key of the enum; "page": number of lines of the screen. */
static void topKeysDo(topKeys *keys, int key, unsigned page)
{
    keys->message[0] = 0;
    if (keys->typing) {
        typeText(keys, key);
        return;
    }
    if (moveCursor(keys, key, page) || runKey(keys, key))
        return;
    for (unsigned i = 0; i < topViews; i++)
        if (topViewSpecs[i].key == key)
            setView(keys, i);
}

/* --- the screen --- */

#define ESCAPE_MS 50  /* ncurses waits so long for the rest of an escape sequence */
#define IDLE_MS   1000

static volatile sig_atomic_t ended; /* number of the signal that ends us. Static because a handler has no context */

static void onSignal(int number)
{
    ended = number;
}

typedef struct {
    topData *data;
    topLook *look;
    topKeys  keys;
    topSheet sheet;
    int      attribute[topStyles];
    double   seconds;
    int      errors;     /* copy of the stderr that we had at the start */
    unsigned drawn;      /* data->pvs.changes when the page was drawn */
    epicsTimeStamp drawnAt;
} screen;

/* Chooses the colours that EPICS displays use for alarm severities. Without colours: bold and reverse. */
static void chooseColours(screen *s)
{
    s->attribute[topPlain] = A_NORMAL;
    s->attribute[topMinor] = s->attribute[topMajor] = A_BOLD;
    s->attribute[topInvalid] = A_BOLD;
    s->attribute[topTitle] = A_BOLD;
    s->attribute[topHeading] = A_UNDERLINE;
    s->attribute[topDim] = A_NORMAL;
    s->attribute[topBar] = A_NORMAL;
    if (!has_colors())
        return;
    start_color();
    use_default_colors();
    init_pair(1, COLOR_YELLOW, -1);
    init_pair(2, COLOR_RED, -1);
    init_pair(3, COLOR_MAGENTA, -1);
    init_pair(4, COLOR_CYAN, -1);
    s->attribute[topMinor] = COLOR_PAIR(1);
    s->attribute[topMajor] = COLOR_PAIR(2) | A_BOLD;
    s->attribute[topInvalid] = COLOR_PAIR(3) | A_BOLD;
    s->attribute[topBar] = COLOR_PAIR(4);
}

/* Hides messages of libraries on stderr, because they would destroy the page. */
static void hideErrors(screen *s)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    s->errors = dup(STDERR_FILENO);
    if (nowhere >= 0) {
        dup2(nowhere, STDERR_FILENO);
        close(nowhere);
    }
}

/* 0, or -1 after a message. newterm, because initscr ends the program itself, and does not say what to do. */
static int beginScreen(screen *s)
{
    struct sigaction action = {.sa_handler = onSignal};

    if (!newterm(NULL, stdout, stdin)) {
        fprintf(stderr, "ebpfMonTop: this host does not know the terminal \"%s\": set TERM=xterm-256color, or use -1 "
                "to print one page\n", getenv("TERM") ? getenv("TERM") : "");
        return -1;
    }
    hideErrors(s);
    sigaction(SIGINT, &action, NULL); /* so the terminal is restored before we end */
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    set_escdelay(ESCAPE_MS);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    chooseColours(s);
    return 0;
}

static void endScreen(screen *s)
{
    endwin();
    if (s->errors >= 0) {
        dup2(s->errors, STDERR_FILENO);
        close(s->errors);
    }
    topSheetFree(&s->sheet);
}

static void drawLine(const screen *s, size_t line, int y)
{
    int left = COLS;

    move(y, 0);
    for (size_t i = topSheetFirstRun(&s->sheet, line); i < topSheetEndRun(&s->sheet, line) && left > 0; i++) {
        const topRun *run = &s->sheet.run[i];
        const char *text = s->sheet.text + run->at;
        size_t length = topTextFit(text, run->length, left);

        left -= topTextWidth(text, length);
        attrset((attr_t)s->attribute[run->style & ~(unsigned)TOP_SELECTED] |
                (run->style & TOP_SELECTED ? A_REVERSE : 0));
        addnstr(text, (int)length);
    }
    attrset(A_NORMAL);
}

static void drawFooter(const screen *s)
{
    char line[300];

    if (s->keys.message[0])
        snprintf(line, sizeof(line), "%s", s->keys.message);
    else if (s->keys.typing)
        snprintf(line, sizeof(line), "%s: %s_", s->keys.typing == s->keys.question ? "why, PV [client]" : "filter",
                 s->keys.typing);
    else
        snprintf(line, sizeof(line), "%s%s%s? views and keys  q quit  Enter one record  / filter  blank pause",
                 s->look->filter[0] ? "filter: " : "", s->look->filter, s->look->filter[0] ? "  " : "");
    move(LINES - 1, 0);
    addnstr(line, COLS - 1);
}

static void drawPage(screen *s)
{
    unsigned page = LINES > 2 ? (unsigned)LINES - 1 : 1;

    s->look->columns = COLS;
    topPageMake(s->data, s->look, page, page, &s->sheet);
    erase();
    for (size_t i = 0; i < s->sheet.lines && i < page; i++)
        drawLine(s, i, (int)i);
    drawFooter(s);
    refresh();
    s->drawn = s->data->pvs.changes;
    epicsTimeGetCurrent(&s->drawnAt);
}

static int translateKey(int key)
{
    switch (key) {
    case KEY_UP:        return topKeyUp;
    case KEY_DOWN:      return topKeyDown;
    case KEY_PPAGE:     return topKeyPageUp;
    case KEY_NPAGE:     return topKeyPageDown;
    case KEY_HOME:      return topKeyHome;
    case KEY_END:       return topKeyEnd;
    case KEY_ENTER:
    case '\n':
    case '\r':          return topKeyEnter;
    case 27:            return topKeyEscape;
    case KEY_BACKSPACE:
    case KEY_LEFT:
    case 8:
    case 127:           return topKeyErase;
    default:            return key < 0x100 ? key : 0;
    }
}

/* Nonzero: there was a key, or the terminal has another size now. */
static int readKeys(screen *s)
{
    int any = 0, key;

    while ((key = getch()) != ERR) {
        any = 1;
        if (translateKey(key))
            topKeysDo(&s->keys, translateKey(key), (unsigned)LINES);
    }
    return any;
}

/* The time (ms) until the next page may be drawn. */
static int getWait(const screen *s)
{
    epicsTimeStamp now;
    double left;

    epicsTimeGetCurrent(&now);
    left = s->seconds - epicsTimeDiffInSeconds(&now, &s->drawnAt);
    return left > s->seconds ? 0 : left > 0 ? (int)(left * 1e3) + 1 : 0; /* the clock may have been set back */
}

int topScreenRun(topData *data, topLook *look, double seconds)
{
    screen s = {.data = data, .look = look, .keys = {.look = look, .data = data}, .seconds = seconds};
    struct pollfd files[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};

    if (beginScreen(&s))
        return 2;
    drawPage(&s);
    while (!s.keys.isEnding && !ended) {
        int isChanged, wait;

        topDataRead(data);
        isChanged = s.drawn != data->pvs.changes;
        wait = isChanged ? getWait(&s) : IDLE_MS;
        if (isChanged && !wait) {
            drawPage(&s);
            continue;
        }
        files[1].fd = data->pvs.file;
        if (poll(files, 2, wait) < 0 && errno != EINTR)
            break;
        if (files[0].revents & (POLLHUP | POLLERR | POLLNVAL))
            break; /* the terminal was closed */
        if (readKeys(&s))
            drawPage(&s);
    }
    endScreen(&s);
    return ended ? 128 + ended : 0;
}
