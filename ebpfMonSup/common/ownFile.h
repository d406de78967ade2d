/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens a file of ours, a log or a database, so that no other user can make the monitor write to another file. The monitor may
 * run as root; a name in a folder where others may write (/tmp) can be their link, their pipe, or a second name of a file of
 * root.
 */
#ifndef EBPFMON_OWNFILE_H
#define EBPFMON_OWNFILE_H

#include <stddef.h>
#include <sys/stat.h>

/*
 * For appending; made if it is not there, with mode 0640 less the umask, owner and group of this process. Returns the
 * descriptor and sets *st; or -1, and "why" says what is wrong and what to do.
 *
 * - Each folder on the way, and each symbolic link to a folder, belongs to root or to our user. A folder where everybody
 *   may write has the sticky bit. So only root and we can exchange what stands there.
 * - The file itself is no link, but a regular file with one name (hard link), and belongs to our user.
 */
int ebpfMonOwnFileOpen(const char *path, struct stat *st, char *why, size_t size);

#endif
