// A library for LD_PRELOAD (ld.so(8)) that counts the work of a program. At the program's exit, writes lines of the form "name count" to the file
// that WORK_COUNTS names. Counts only operations whose number depends little on the speed of the machine.
//
// Swift's runtime calls `swift_task_enqueueGlobal_hook` each time a task moves to the cooperative pool (swift/Runtime/Concurrency.h). The hook can be
// a C function, because Swift and C pass two pointers in the same registers.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

static _Atomic long allocations, hops, statements, syncs, sends, sent;

// glibc's own names for the functions that this library replaces.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_realloc(memory, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    atomic_fetch_add(&allocations, 1);
    *memory = __libc_memalign(alignment, size);
    return *memory == NULL ? 12 /* ENOMEM */ : 0;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

struct sqlite3_stmt;
int sqlite3_reset(struct sqlite3_stmt *statement) {
    atomic_fetch_add(&statements, 1);
    return NEXT(sqlite3_reset)(statement);
}

int fsync(int file) {
    atomic_fetch_add(&syncs, 1);
    return NEXT(fsync)(file);
}

int fdatasync(int file) {
    atomic_fetch_add(&syncs, 1);
    return NEXT(fdatasync)(file);
}

static ssize_t count_sent(ssize_t result) {
    atomic_fetch_add(&sends, 1);
    if (result > 0) atomic_fetch_add(&sent, result);
    return result;
}

ssize_t send(int socket, const void *bytes, size_t count, int flags) { return count_sent(NEXT(send)(socket, bytes, count, flags)); }

ssize_t sendmsg(int socket, const struct msghdr *message, int flags) { return count_sent(NEXT(sendmsg)(socket, message, flags)); }

static void count_hop(void *job, void (*enqueue)(void *job)) {
    atomic_fetch_add(&hops, 1);
    enqueue(job);
}

__attribute__((constructor)) static void begin(void) {
    void (**hook)(void *, void (*)(void *)) = dlsym(RTLD_DEFAULT, "swift_task_enqueueGlobal_hook");
    if (hook != NULL) *hook = count_hop;
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("WORK_COUNTS");
    FILE *file = path == NULL ? NULL : fopen(path, "w");
    if (file == NULL) return;
    fprintf(file, "allocations %ld\nhops %ld\nstatements %ld\nsyncs %ld\nsends %ld\nsent %ld\n", allocations, hops, statements, syncs, sends, sent);
    fclose(file);
}
