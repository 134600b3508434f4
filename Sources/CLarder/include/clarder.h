// What Larder takes from C: two checks that need vector instructions, and what Swift does not import (variadic
// functions, some macros, GNU extensions), and zstd, which need not be there. No state is kept between calls but that of
// getopt and zstd's contexts.
#ifndef CLARDER_H
#define CLARDER_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "clarder_guard.h"

#ifdef __cplusplus
extern "C" {
#endif

// MARK: Checks (crc32c.c, utf8.c). Safe from any thread.

/// CRC-32C (Castagnoli, reflected, inverted before and after) of `n` bytes, continuing from `crc`; start with 0.
/// `larder_crc32c(larder_crc32c(0, a, n), b, m)` is the CRC of a followed by b.
uint32_t larder_crc32c(uint32_t crc, const void *_Nullable p, size_t n);

/// The same value by tables alone; the twin that tests hold `larder_crc32c` against.
uint32_t larder_crc32c_portable(uint32_t crc, const void *_Nullable p, size_t n);

/// 1 if the bytes are UTF-8 without NUL, else 0 with the offset at which the first bad sequence begins (or the NUL).
/// Overlong forms, surrogates, values above U+10FFFF and a sequence cut at the end are bad. `error_offset` may be NULL
/// and is not touched on success.
int larder_utf8_valid(const uint8_t *_Nullable p, size_t n, size_t *_Nullable error_offset);

/// The same answer a byte at a time; the twin that tests hold `larder_utf8_valid` against.
int larder_utf8_valid_portable(const uint8_t *_Nullable p, size_t n, size_t *_Nullable error_offset);

// MARK: Folding (fold.c; SPEC.md section 17). Safe from any thread. Bytes that are no UTF-8 do no harm.

/// Folds the scalars that need no look at their neighbours: most scripts, and Hangul whether composed or not. Ends at
/// the end, or before the last scalar that one which may join to it follows (`larder_fold_joining`). `out` has room for
/// n + n / 2 + 64 bytes. Returns the bytes read; `written` is set in every case.
size_t larder_fold_plain(const uint8_t *_Nonnull p, size_t n, uint8_t *_Nonnull out, size_t *_Nonnull written);

/// The same a word or a scalar at a time; the twin that tests hold `larder_fold_plain` against.
size_t larder_fold_plain_portable(const uint8_t *_Nonnull p, size_t n, uint8_t *_Nonnull out,
                                  size_t *_Nonnull written);

/// Bytes of the scalar at p with all behind it that may join to one another: to be normalised as a whole.
size_t larder_fold_joining(const uint8_t *_Nonnull p, size_t n);

/// A scalar's simple case folding in its ordinary width; itself where there is none.
uint32_t larder_fold_scalar(uint32_t scalar);

/// Bytes to be looked for, with the offsets of the two of them that are looked for first. The bytes stay the caller's.
typedef struct larder_needle {
    const uint8_t *_Nullable bytes;
    size_t count, first, second;
} larder_needle;

larder_needle larder_needle_of(const uint8_t *_Nullable bytes, size_t count);

/// Where the needle first stands in n bytes, or -1. An empty one stands at 0. The 32 bytes behind the n can be read.
ssize_t larder_find(const uint8_t *_Nonnull p, size_t n, const larder_needle *_Nonnull needle);

/// The same by memmem; the twin that tests hold `larder_find` against.
ssize_t larder_find_portable(const uint8_t *_Nonnull p, size_t n, const larder_needle *_Nonnull needle);

// MARK: zstd (zstd.c). Safe from any thread; each has its own context. The library is loaded by the first call.

/// 1 if libzstd.so.1 is installed.
int larder_zstd_is_there(void);

/// Bytes that n bytes take at most when they are compressed; 0 without the library.
size_t larder_zstd_bound(size_t n);

/// Compresses n bytes into one frame. Its bytes, or -1: the library is not there, or `out` is too small.
ssize_t larder_zstd_pack(void *_Nonnull out, size_t capacity, const void *_Nonnull p, size_t n, int level);

/// Unpacks frames. The bytes they hold, or -1: no frames, more than `capacity`, or no library.
ssize_t larder_zstd_unpack(void *_Nonnull out, size_t capacity, const void *_Nonnull p, size_t n);

/// Bytes of the frame that begins at p, or -1.
ssize_t larder_zstd_frame(const void *_Nonnull p, size_t n);

// MARK: Files. Those that return int answer 0 or a descriptor, or -errno, unless said otherwise.

/// O_DIRECT, whose value differs between architectures.
int larder_o_direct(void);

/// open(2), with O_CLOEXEC always added. A descriptor, or -errno.
int larder_open(const char *_Nonnull path, int flags, mode_t mode);

/// preadv2(RWF_NOWAIT): what is in the page cache. The byte count, or -1 with errno EAGAIN where it would block and
/// EOPNOTSUPP where the kernel or the file system can't say.
ssize_t larder_preadv2_nowait(int fd, void *_Nonnull buffer, size_t n, int64_t offset);

/// A non-blocking write lock over the whole file that belongs to the open file description (F_OFD_SETLK) and goes when
/// its last descriptor is closed. 0, or errno (EAGAIN or EACCES: another holds it).
int larder_lock_exclusive(int fd);

/// Whether somebody has the lock of `larder_lock_exclusive`: 1 or 0, or -errno. Takes none.
int larder_lock_probe(int fd);

/// The number by which statfs(2) names the kind of file system that a path is on, or -errno.
int64_t larder_file_system_type(const char *_Nonnull path);

/// fallocate(FALLOC_FL_KEEP_SIZE): room without a change of size. 0 or -errno.
int larder_fallocate_keep(int fd, int64_t offset, int64_t length);

/// fcntl(F_GETFL), or -errno.
int larder_fcntl_getfl(int fd);

/// Sets or clears FD_CLOEXEC. 0 or -errno.
int larder_set_cloexec(int fd, int on);

/// errno of this thread; to be read before any other call.
int larder_errno(void);

/// Columns of the terminal at `fd`; 0 if it is none or does not know.
int larder_terminal_width(int fd);

/// The numbers of standard output and standard error.
int larder_stdout(void);
int larder_stderr(void);

// MARK: Sockets and pipes. All descriptors made here are close-on-exec.

/// Two connected Unix stream sockets in blocking mode. 0 or -errno.
int larder_socket_pair(int fds[_Nonnull 2]);

/// A pipe in blocking mode: fds[0] is read, fds[1] written. 0 or -errno.
int larder_pipe(int fds[_Nonnull 2]);

/// accept4: a non-blocking descriptor, or -errno.
int larder_accept(int fd);

/// A Unix stream socket bound to `path`, whose node has permissions `mode` from its first moment, and listening.
/// A descriptor, or -errno (ENAMETOOLONG: the path exceeds sun_path; EADDRINUSE: there is a node already).
int larder_listen_unix(const char *_Nonnull path, int backlog, mode_t mode);

/// User and process at the other end of a Unix socket when it connected (SO_PEERCRED). 0 or -errno.
int larder_peer_uid(int fd, uid_t *_Nonnull uid, pid_t *_Nonnull pid);

// MARK: Processes and memory

/// Makes this process the parent of its orphaned descendants (PR_SET_CHILD_SUBREAPER). 0 or -errno.
int larder_set_subreaper(void);

/// Asks for `signal` when the thread that started this process ends (PR_SET_PDEATHSIG); 0 asks for none. 0 or -errno.
int larder_set_death_signal(int signal);

/// Has the process that posix_spawn starts with `actions` (a posix_spawn_file_actions_t) begin in a directory; a GNU
/// extension. 0 or -errno.
int larder_spawn_chdir(void *_Nonnull actions, const char *_Nonnull directory);

/// Names the calling thread (at most 15 bytes are kept). 0 or -errno.
int larder_thread_name(const char *_Nonnull name);

/// Binds a thread (0: the calling one) to one CPU; below 0 to every CPU there is. 0 or -errno.
int larder_pin(pid_t thread, int cpu);

/// Zeroed private pages, or NULL. To be given back to `larder_memory_unmap` with the same size.
void *_Nullable larder_memory_map(size_t size);
void larder_memory_unmap(void *_Nullable address, size_t size);

// MARK: Command line

/// One long option. `takes_argument`: 0 no, 1 required, 2 optional.
typedef struct larder_option {
    const char *_Nullable name;
    int takes_argument;
    int value;
} larder_option;

/// getopt_long over `count` long options (at most 128, else -1). The option's value, '?' for an unknown one, ':' for a
/// missing argument where `short_options` begins with a colon, -1 at the end. Sets the index of the long option found
/// if `long_index` is not NULL. Not for two threads at a time.
int larder_getopt_long(int argc, char *_Nullable const *_Nonnull argv, const char *_Nonnull short_options,
                       const larder_option *_Nullable options, size_t count, int *_Nullable long_index);
int larder_optind(void);
/// Where the next call begins; 0 restarts from the beginning.
void larder_set_optind(int index);
int larder_optopt(void);
void larder_set_opterr(int on);
const char *_Nullable larder_optarg(void);

#ifdef __cplusplus
}
#endif
/// Has the cache line at an address fetched; a hint that never faults.
static inline void larder_prefetch(const void *_Nonnull address) { __builtin_prefetch(address); }

#endif
