/* SPDX-License-Identifier: BSD-3-Clause */
#define _XOPEN_SOURCE 700 /* wcwidth */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "common/array.h"
#include "common/text.h"
#include "topSheet.h"

#define PIECE_MAX 2000 /* bytes of one piece of text at most; a line of a PV has at most 1400 */

void topSheetClear(topSheet *sheet)
{
    sheet->length = sheet->runs = sheet->lines = 0;
    sheet->columns = 0;
    sheet->isShort = 0;
}

void topSheetFree(topSheet *sheet)
{
    free(sheet->text);
    free(sheet->run);
    free(sheet->line);
    memset(sheet, 0, sizeof(*sheet));
}

/* Makes room for a piece of text. Nonzero: there is no memory. */
static int beginPiece(topSheet *sheet, size_t length)
{
    if (ebpfMonArrayGrow(&sheet->text, &sheet->textRoom, sheet->length + length, 4096, 1) ||
        ebpfMonArrayGrow(&sheet->run, &sheet->runRoom, sheet->runs + 1, 256, sizeof(*sheet->run)))
        sheet->isShort = 1;
    return sheet->isShort;
}

static void addPiece(topSheet *sheet, unsigned style, const char *text, size_t length)
{
    if (!length || beginPiece(sheet, length))
        return;
    memcpy(sheet->text + sheet->length, text, length);
    sheet->run[sheet->runs++] = (topRun){sheet->length, length, style};
    sheet->length += length;
    sheet->columns += topTextWidth(text, length);
}

void topSheetAdd(topSheet *sheet, unsigned style, const char *format, ...)
{
    char raw[PIECE_MAX], clean[PIECE_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(raw, sizeof(raw), format, args);
    va_end(args);
    ebpfMonTextCopy(clean, sizeof(clean), raw);
    addPiece(sheet, style, clean, strlen(clean));
}

void topSheetFill(topSheet *sheet, unsigned style, int column)
{
    char blanks[PIECE_MAX];
    int count = column - sheet->columns;

    if (count <= 0)
        return;
    if (count > (int)sizeof(blanks))
        count = (int)sizeof(blanks);
    memset(blanks, ' ', (size_t)count);
    addPiece(sheet, style, blanks, (size_t)count);
}

void topSheetEndLine(topSheet *sheet)
{
    if (ebpfMonArrayGrow(&sheet->line, &sheet->lineRoom, sheet->lines + 1, 128, sizeof(*sheet->line))) {
        sheet->isShort = 1;
        return;
    }
    sheet->line[sheet->lines++] = sheet->runs;
    sheet->columns = 0;
}

size_t topSheetFirstRun(const topSheet *sheet, size_t line)
{
    return line ? sheet->line[line - 1] : 0;
}

size_t topSheetEndRun(const topSheet *sheet, size_t line)
{
    return sheet->line[line];
}

void topSheetPrint(const topSheet *sheet, FILE *out)
{
    for (size_t line = 0; line < sheet->lines; line++) {
        size_t first = topSheetFirstRun(sheet, line), end = topSheetEndRun(sheet, line);
        size_t from = first < end ? sheet->run[first].at : 0;
        size_t to = first < end ? sheet->run[end - 1].at + sheet->run[end - 1].length : 0;

        while (to > from && sheet->text[to - 1] == ' ') /* the texts of a line's runs follow each other in "text" */
            to--;
        fprintf(out, "%.*s\n", (int)(to - from), sheet->text + from);
    }
}

/* Returns the bytes of the next character; *columns: how many columns it takes. */
static size_t measureCharacter(const char *text, size_t length, int *columns)
{
    mbstate_t state;
    wchar_t wide;
    size_t bytes;

    memset(&state, 0, sizeof(state));
    bytes = mbrtowc(&wide, text, length, &state);
    if (bytes == 0 || bytes > length) { /* the locale is not UTF-8 */
        *columns = 1;
        return 1;
    }
    *columns = wcwidth(wide);
    if (*columns < 0)
        *columns = 1;
    return bytes;
}

int topTextWidth(const char *text, size_t length)
{
    int all = 0, columns;

    for (size_t at = 0; at < length; all += columns)
        at += measureCharacter(text + at, length - at, &columns);
    return all;
}

size_t topTextFit(const char *text, size_t length, int columns)
{
    size_t at = 0;
    int width;

    while (at < length) {
        size_t bytes = measureCharacter(text + at, length - at, &width);

        if (width > columns)
            break;
        columns -= width;
        at += bytes;
    }
    return at;
}
