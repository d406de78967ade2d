/* SPDX-License-Identifier: BSD-3-Clause */
#define _XOPEN_SOURCE_EXTENDED 1 /* the wide ncurses */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsTime.h>
#include <ncurses.h>

#include "topKeys.h"
#include "topScreen.h"

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
    else if (s->keys.isTyping)
        snprintf(line, sizeof(line), "filter: %s_", s->look->filter);
    else
        snprintf(line, sizeof(line), "%s%s%s? help  q quit  views: o s p a i b c n u k l  Enter one record  / filter  "
                 "blank pause", s->look->filter[0] ? "filter: " : "", s->look->filter,
                 s->look->filter[0] ? "  " : "");
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
