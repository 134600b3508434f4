// Small accessors; the contracts are in clarder.h.
#define _GNU_SOURCE
#include "clarder.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static int result(int r) { return r < 0 ? -errno : r; }

// MARK: Files

int larder_o_direct(void) { return O_DIRECT; }

int larder_open(const char *path, int flags, mode_t mode) {
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EINTR);
    return result(fd);
}

ssize_t larder_preadv2_nowait(int fd, void *buffer, size_t n, int64_t offset) {
    struct iovec slice = {buffer, n};
#ifdef SYS_preadv2
    // Past the C library, whose call is a cancellation point and costs a twentieth of a small read.
    ssize_t r = syscall(SYS_preadv2, fd, &slice, 1, (unsigned long)offset, (unsigned long)((uint64_t)offset >> 32), RWF_NOWAIT);
#else
    ssize_t r = preadv2(fd, &slice, 1, offset, RWF_NOWAIT);
#endif
    if (r < 0 && errno == ENOSYS) errno = EOPNOTSUPP;
    return r;
}

int larder_lock_exclusive(int fd) {
    struct flock lock;
    memset(&lock, 0, sizeof lock);  // l_pid has to be 0
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    return fcntl(fd, F_OFD_SETLK, &lock) < 0 ? errno : 0;
}

int64_t larder_file_system_type(const char *path) {
    struct statfs status;
    return statfs(path, &status) < 0 ? -errno : (int64_t)((uint64_t)status.f_type & 0xffffffffu);
}

int larder_lock_probe(int fd) {
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    if (fcntl(fd, F_OFD_GETLK, &lock) < 0) return -errno;
    return lock.l_type == F_UNLCK ? 0 : 1;
}

int larder_fallocate_keep(int fd, int64_t offset, int64_t length) {
    int r;
    do {
        r = fallocate(fd, FALLOC_FL_KEEP_SIZE, offset, length);
    } while (r < 0 && errno == EINTR);
    return result(r);
}

int larder_fcntl_getfl(int fd) { return result(fcntl(fd, F_GETFL)); }

int larder_set_cloexec(int fd, int on) {
    int flags = fcntl(fd, F_GETFD);
    if (flags < 0) return -errno;
    return result(fcntl(fd, F_SETFD, on ? flags | FD_CLOEXEC : flags & ~FD_CLOEXEC));
}

int larder_errno(void) { return errno; }

int larder_terminal_width(int fd) {
    struct winsize size;
    memset(&size, 0, sizeof size);
    return ioctl(fd, TIOCGWINSZ, &size) < 0 ? 0 : size.ws_col;
}

int larder_stdout(void) { return STDOUT_FILENO; }
int larder_stderr(void) { return STDERR_FILENO; }

// MARK: Sockets and pipes

int larder_socket_pair(int fds[2]) { return result(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)); }

int larder_pipe(int fds[2]) { return result(pipe2(fds, O_CLOEXEC)); }

int larder_accept(int fd) { return result(accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)); }

int larder_listen_unix(const char *path, int backlog, mode_t mode) {
    struct sockaddr_un address;
    size_t n = strlen(path);
    if (n == 0) return -EINVAL;
    if (n >= sizeof address.sun_path) return -ENAMETOOLONG;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path, n);

    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    // Linux gives the node that bind makes the mode of the socket; a chmod afterwards would leave a gap.
    if (fchmod(fd, mode) < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    if (listen(fd, backlog) < 0) {
        int error = errno;
        unlink(path);
        close(fd);
        return -error;
    }
    return fd;
}

int larder_peer_uid(int fd, uid_t *uid, pid_t *pid) {
    struct ucred peer;
    socklen_t n = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0) return -errno;
    *uid = peer.uid;
    *pid = peer.pid;
    return 0;
}

// MARK: Processes and memory

int larder_set_subreaper(void) { return result(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)); }

int larder_set_death_signal(int signal) { return result(prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0)); }

int larder_spawn_chdir(void *actions, const char *directory) {
    return -posix_spawn_file_actions_addchdir_np(actions, directory);
}

int larder_thread_name(const char *name) {
    char kept[16];
    strncpy(kept, name, sizeof kept - 1);
    kept[sizeof kept - 1] = 0;
    return -pthread_setname_np(pthread_self(), kept);
}

int larder_pin(pid_t thread, int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu >= CPU_SETSIZE) return -EINVAL;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (cpu < 0 || i == cpu) CPU_SET(i, &set);
    return result(sched_setaffinity(thread, sizeof set, &set));
}

void *larder_memory_map(size_t size) {
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    // A table of tens of megabytes that is probed at random would miss the TLB at every probe.
    if (size >= 4u << 20) madvise(p, size, MADV_HUGEPAGE);
    return p;
}

void larder_memory_unmap(void *address, size_t size) {
    if (address) munmap(address, size);
}

// MARK: Command line

int larder_getopt_long(int argc, char *const *argv, const char *short_options, const larder_option *options,
                       size_t count, int *long_index) {
    enum { count_max = 128 };
    struct option table[count_max + 1];
    if (count > count_max) return -1;
    for (size_t i = 0; i < count; i++)
        table[i] = (struct option){options[i].name, options[i].takes_argument, NULL, options[i].value};
    memset(&table[count], 0, sizeof table[count]);
    return getopt_long(argc, argv, short_options, table, long_index);
}

int larder_optind(void) { return optind; }
void larder_set_optind(int index) { optind = index; }
int larder_optopt(void) { return optopt; }
void larder_set_opterr(int on) { opterr = on; }
const char *larder_optarg(void) { return optarg; }
