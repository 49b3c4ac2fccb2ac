/* Between a program and its disk (LD_PRELOAD): tells every call that changes files below a folder,
 * and fails one of them when asked to. Built and used by tests/support/serve_disk.py.
 *
 * The log is a sequence of lines "letter length offset path<tab>path", each followed by so many
 * bytes of data: O open and perhaps create, T truncate (length in offset), W write,
 * S sync, R rename, U unlink, M a mark of the program's own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_to = -1;
static char root[PATH_MAX];
static int skip_syncs;
static long fail_at = -1;
static int fail_with;
static long calls;

static void put(const void *data, size_t length) {
    const char *from = data;
    while (length) {
        long done = syscall(SYS_write, log_to, from, length);
        if (done <= 0) abort();
        from += done;
        length -= done;
    }
}

static void tell(char what, const char *a, const char *b, long offset, const void *data, size_t n) {
    char head[2 * PATH_MAX + 100];
    pthread_mutex_lock(&lock);
    int length = snprintf(head, sizeof head, "%c %zu %ld %s\t%s\n", what, n, offset, a, b);
    put(head, length);
    if (n) put(data, n);
    pthread_mutex_unlock(&lock);
}

/* The path below the root, "." for the root itself; 0 if it is elsewhere or nothing is asked. */
static const char *below(const char *path) {
    size_t length = strlen(root);
    if (log_to < 0 || strncmp(path, root, length)) return 0;
    if (path[length] == 0) return ".";
    return path[length] == '/' ? path + length + 1 : 0;
}

static const char *path_of(int fd, char *space) {
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (log_to < 0) return 0;
    long length = syscall(SYS_readlink, link, space, PATH_MAX - 1);
    if (length <= 0) return 0;
    space[length] = 0;
    return below(space);
}

/* SQLite's index of its log is memory that happens to have a name: no disk ever needs it. */
static int matters(const char *name) {
    size_t length = name ? strlen(name) : 0;
    return name && !(length > 4 && !strcmp(name + length - 4, "-shm"));
}

static int fails(void) {
    pthread_mutex_lock(&lock);
    int now = ++calls == fail_at;
    pthread_mutex_unlock(&lock);
    if (now) errno = fail_with;
    return now;
}

void shim_start(const char *folder, int fd) {
    strncpy(root, folder, PATH_MAX - 1);
    log_to = fd;
}
void shim_mark(const char *text) { tell('M', text, "", 0, "", 0); }
void shim_skip_syncs(int yes) { skip_syncs = yes; }
void shim_fail(long nth, int with) {
    calls = 0;
    fail_at = nth;
    fail_with = with;
}
long shim_calls(void) { return calls; }

#define REAL(name, type) \
    static type real; \
    if (!real) real = (type)dlsym(RTLD_NEXT, name)

typedef int (*open_type)(const char *, int, ...);
static int opened(open_type real, const char *path, int flags, mode_t mode) {
    const char *name = below(path);
    int changes = matters(name) && (flags & (O_CREAT | O_TRUNC)) && !(flags & O_DIRECTORY);
    if (changes && fails()) return -1;
    int fd = real(path, flags, mode);
    if (changes && fd >= 0) {
        tell('O', name, "", 0, "", 0);
        if (flags & O_TRUNC) tell('T', name, "", 0, "", 0);
    }
    return fd;
}
#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        REAL(#name, open_type); \
        return opened(real, path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

typedef ssize_t (*pwrite_type)(int, const void *, size_t, off_t);
static ssize_t pwritten(pwrite_type real, int fd, const void *data, size_t n, off_t offset) {
    char space[PATH_MAX];
    const char *name = path_of(fd, space);
    if (!matters(name)) return real(fd, data, n, offset);
    if (fails()) return -1;
    ssize_t done = real(fd, data, n, offset);
    if (done > 0) tell('W', name, "", offset, data, done);
    return done;
}
ssize_t pwrite(int fd, const void *data, size_t n, off_t offset) {
    REAL("pwrite", pwrite_type);
    return pwritten(real, fd, data, n, offset);
}
ssize_t pwrite64(int fd, const void *data, size_t n, off_t offset) {
    REAL("pwrite64", pwrite_type);
    return pwritten(real, fd, data, n, offset);
}
ssize_t write(int fd, const void *data, size_t n) {
    typedef ssize_t (*type)(int, const void *, size_t);
    REAL("write", type);
    char space[PATH_MAX];
    const char *name = fd == log_to ? 0 : path_of(fd, space);
    if (!matters(name)) return real(fd, data, n);
    if (fails()) return -1;
    off_t offset = lseek(fd, 0, SEEK_CUR);
    ssize_t done = real(fd, data, n);
    if (done > 0) tell('W', name, "", offset, data, done);
    return done;
}

typedef int (*truncate_type)(int, off_t);
static int truncated(truncate_type real, int fd, off_t length) {
    char space[PATH_MAX];
    const char *name = path_of(fd, space);
    if (!matters(name)) return real(fd, length);
    if (fails()) return -1;
    int done = real(fd, length);
    if (!done) tell('T', name, "", length, "", 0);
    return done;
}
int ftruncate(int fd, off_t length) {
    REAL("ftruncate", truncate_type);
    return truncated(real, fd, length);
}
int ftruncate64(int fd, off_t length) {
    REAL("ftruncate64", truncate_type);
    return truncated(real, fd, length);
}

typedef int (*sync_type)(int);
static int synced(sync_type real, int fd) {
    char space[PATH_MAX];
    const char *name = path_of(fd, space);
    if (!matters(name)) return real(fd);
    if (fails()) return -1;
    if (skip_syncs) return 0;
    int done = real(fd);
    if (!done) tell('S', name, "", 0, "", 0);
    return done;
}
int fsync(int fd) {
    REAL("fsync", sync_type);
    return synced(real, fd);
}
int fdatasync(int fd) {
    REAL("fdatasync", sync_type);
    return synced(real, fd);
}

int rename(const char *from, const char *to) {
    typedef int (*type)(const char *, const char *);
    REAL("rename", type);
    const char *name = below(from);
    if (!matters(name)) return real(from, to);
    if (fails()) return -1;
    int done = real(from, to);
    if (!done) tell('R', name, below(to), 0, "", 0);
    return done;
}
int unlink(const char *path) {
    typedef int (*type)(const char *);
    REAL("unlink", type);
    const char *name = below(path);
    int done = real(path);
    if (!done && matters(name)) tell('U', name, "", 0, "", 0);
    return done;
}
