/* Fails the n-th call that changes a file below a folder, and optionally all later ones.

   Compiled to a library for LD_PRELOAD. `fail_call(folder, n, error, later, reads)` starts the
   count, of calls that read files instead if `reads` is not 0. `calls_made()` returns the number
   of calls so far, and `failed_call()` the one that failed first.
   The calls are the ones of the C library that Python, TensorFlow and SentencePiece use. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[4096];
static char what[5000], last_path[4096];
static long first, calls;
static int code, all_later, of_reads;

void fail_call(const char *path, long n, int error, int later, int reads) {
    strncpy(folder, path, sizeof folder - 1);
    first = n;
    calls = 0;
    code = error;
    all_later = later;
    of_reads = reads;
}

long calls_made(void) { return calls; }

const char *failed_call(void) { return what; }

static int is_below(const char *path) {
    char full[8192];
    if (!folder[0] || !path) return 0;
    if (path[0] != '/') {
        if (!getcwd(full, sizeof full / 2)) return 0;
        strcat(full, "/");
        strncat(full, path, sizeof full / 2 - 1);
        path = full;
    }
    if (strncmp(path, folder, strlen(folder))) return 0;
    strncpy(last_path, path, sizeof last_path - 1);
    return 1;
}

static int is_open_below(int handle) {
    char link[64], path[4096];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

/* Returns 1 with `errno` set if this call, which reads or changes a file, fails. */
static int fails(const char *name, int reads) {
    if (reads != of_reads) return 0;
    long call = __sync_add_and_fetch(&calls, 1);
    if (call == first) snprintf(what, sizeof what, "%s %s", name, last_path + strlen(folder));
    if (call == first || (all_later && call > first)) {
        errno = code;
        return 1;
    }
    return 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define CALL(reads, result, name, parameters, below, arguments)  \
    result name parameters {                                     \
        if ((below) && fails(#name, reads)) return (result)-1;   \
        return REAL(name) arguments;                             \
    }
#define CHANGES(...) CALL(0, __VA_ARGS__)
#define READS(...) CALL(1, __VA_ARGS__)

CHANGES(ssize_t, write, (int f, const void *b, size_t n), is_open_below(f), (f, b, n))
CHANGES(ssize_t, writev, (int f, const struct iovec *v, int n), is_open_below(f), (f, v, n))
CHANGES(ssize_t, pwrite, (int f, const void *b, size_t n, off_t o), is_open_below(f), (f, b, n, o))
CHANGES(ssize_t, pwrite64, (int f, const void *b, size_t n, off64_t o), is_open_below(f),
        (f, b, n, o))
CHANGES(int, fsync, (int f), is_open_below(f), (f))
CHANGES(int, fdatasync, (int f), is_open_below(f), (f))
CHANGES(int, ftruncate, (int f, off_t n), is_open_below(f), (f, n))
CHANGES(int, ftruncate64, (int f, off64_t n), is_open_below(f), (f, n))
CHANGES(int, mkdir, (const char *p, mode_t m), is_below(p), (p, m))
CHANGES(int, rename, (const char *a, const char *b), is_below(b), (a, b))
CHANGES(int, link, (const char *a, const char *b), is_below(b), (a, b))

READS(ssize_t, read, (int f, void *b, size_t n), is_open_below(f), (f, b, n))
READS(ssize_t, readv, (int f, const struct iovec *v, int n), is_open_below(f), (f, v, n))
READS(ssize_t, pread, (int f, void *b, size_t n, off_t o), is_open_below(f), (f, b, n, o))
READS(ssize_t, pread64, (int f, void *b, size_t n, off64_t o), is_open_below(f), (f, b, n, o))

DIR *opendir(const char *path) {
    if (is_below(path) && fails("opendir", 1)) return NULL;
    return REAL(opendir)(path);
}

size_t fread(void *b, size_t size, size_t n, FILE *f) {
    if (folder[0] && is_open_below(fileno(f)) && fails("fread", 1)) return 0;
    return REAL(fread)(b, size, n, f);
}

size_t fwrite(const void *b, size_t size, size_t n, FILE *f) {
    if (folder[0] && is_open_below(fileno(f)) && fails("fwrite", 0)) return 0;
    return REAL(fwrite)(b, size, n, f);
}

int fflush(FILE *f) {
    if (folder[0] && f && is_open_below(fileno(f)) && fails("fflush", 0)) return EOF;
    return REAL(fflush)(f);
}

FILE *fopen(const char *path, const char *mode) {
    if (is_below(path) && fails("fopen", !strpbrk(mode, "wa+"))) return NULL;
    return REAL(fopen)(path, mode);
}

FILE *fopen64(const char *path, const char *mode) {
    if (is_below(path) && fails("fopen", !strpbrk(mode, "wa+"))) return NULL;
    return REAL(fopen64)(path, mode);
}

#define WRITES(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT))
#define OPENS(name)                                                      \
    int name(const char *path, int flags, ...) {                         \
        va_list rest;                                                    \
        va_start(rest, flags);                                           \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;        \
        va_end(rest);                                                    \
        if (is_below(path) && fails(#name, !WRITES(flags))) return -1;   \
        return REAL(name)(path, flags, mode);                            \
    }

OPENS(open)
OPENS(open64)
