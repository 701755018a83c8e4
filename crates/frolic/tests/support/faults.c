/* Preloaded into the platform by a test: makes the system calls of one folder fail
   as those of a broken or read-only disk do, while a file of that name exists, or
   kills the process before one of its writes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_on(const char *fault) {
    const char *folder = getenv("FAULT_SWITCHES");
    char path[PATH_MAX];
    struct stat found;
    if (!folder) return 0;
    snprintf(path, sizeof path, "%s/%s", folder, fault);
    int before = errno;
    int on = stat(path, &found) == 0;
    errno = before;
    return on;
}

static int is_ours(const char *path) {
    const char *folder = getenv("FAULT_FOLDER");
    return folder && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_ours_fd(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_ours(path);
}

#define READ_ONLY_FD(fd) \
    if (is_on("read-only") && is_ours_fd(fd)) return errno = EROFS, -1

/* Ends the process before write number FAULT_KILL_AT to files whose paths begin with
   FAULT_FOLDER. */
static void count_write(int fd) {
    static int number;
    const char *at = getenv("FAULT_KILL_AT");
    if (at && is_ours_fd(fd) && __atomic_add_fetch(&number, 1, __ATOMIC_SEQ_CST) == atoi(at))
        kill(getpid(), SIGKILL);
}

/* Ends the process in order before it prints FAULT_END_AT. */
static void look_for_end(int fd, const void *bytes, size_t count) {
    const char *at = getenv("FAULT_END_AT");
    if (at && fd == STDOUT_FILENO && memmem(bytes, count, at, strlen(at))) _exit(0);
}

#define SYNC(name) \
    int name(int fd) { \
        count_write(fd); \
        if (is_on("fsync") && is_ours_fd(fd)) return errno = EIO, -1; \
        READ_ONLY_FD(fd); \
        return REAL(name)(fd); \
    }
SYNC(fsync)
SYNC(fdatasync)

ssize_t write(int fd, const void *bytes, size_t count) {
    count_write(fd);
    look_for_end(fd, bytes, count);
    READ_ONLY_FD(fd);
    return REAL(write)(fd, bytes, count);
}
#define PWRITE(name, offset_t) \
    ssize_t name(int fd, const void *bytes, size_t count, offset_t at) { \
        count_write(fd); \
        READ_ONLY_FD(fd); \
        return REAL(name)(fd, bytes, count, at); \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)
int ftruncate(int fd, off_t length) {
    count_write(fd);
    READ_ONLY_FD(fd);
    return REAL(ftruncate)(fd, length);
}
int ftruncate64(int fd, off64_t length) {
    count_write(fd);
    READ_ONLY_FD(fd);
    return REAL(ftruncate64)(fd, length);
}

static int writes(int flags) { return flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC); }

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if (writes(flags) && is_ours(path) && is_on("read-only")) return errno = EROFS, -1; \
        return REAL(name)(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

int unlink(const char *path) {
    if (is_ours(path) && is_on("read-only")) return errno = EROFS, -1;
    return REAL(unlink)(path);
}
