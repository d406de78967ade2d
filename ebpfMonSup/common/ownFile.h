/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens a file of ours, a log or a database, so that no other user can make the monitor write to another file. The
 * monitor may run as root. A name in a folder where others may write (/tmp) can be another user's link, another user's
 * pipe, or a second name of a file of root. Any thread.
 */
#ifndef EBPFMON_OWNFILE_H
#define EBPFMON_OWNFILE_H

#include <stddef.h>
#include <sys/stat.h>

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

#endif
