/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EBPFMON_FILES_H
#define EBPFMON_FILES_H

#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

/* --- a file of ours ---
 *
 * Opens a file of ours, a log or a database, so that no other user can make the monitor write to another file. The
 * monitor may run as root. A name in a folder where others may write (/tmp) can be another user's link, another user's
 * pipe, or a second name of a file of root. Any thread.
 */

/*
 * Opens a file to append. If it does not exist it is made, with mode 0640 less the umask, and with owner and group of
 * this process. Returns the descriptor, which the caller closes, and sets *st. -1: "why" gets what is wrong and what to
 * do. The conditions are:
 *
 * - Each folder on the way, and each symbolic link to a folder, belongs to root or to our user. A folder where
 *   everybody may write has the sticky bit. So only root and we can exchange what is in it.
 * - The file itself is no link, but a regular file with one name (hard link), and belongs to our user.
 */
int ebpfMonOwnFileOpen(const char *path, struct stat *st, char *why, size_t size);

/* Makes a new file to write. If there is one already (somebody may have made a link to another file), it is removed,
 * and never written to. NULL: errno says why. Any thread. */
FILE *ebpfMonNewFileMake(const char *path);

/* --- a file that an operator named ---
 *
 * Reads a whole file that an operator named: a regular file of limited size. Any thread.
 */

/* Returns at most "most" bytes, which the caller frees, without a NUL after them; *length gets their number. NULL:
 * "why" gets what is wrong and what to do. */
char *ebpfMonWholeFileRead(const char *file, size_t most, size_t *length, char *why, size_t size);

#endif
