// A library to preload into a program. When the program calls fsync or fdatasync for certain folders, or for a file or folder below them,
// the library records the content of the file, or the names in the folder. From these records, `power-loss` restores the folders to a
// state that they may have after a power failure.
//
//   POWERLOSS_ROOTS    the folders whose syncs are recorded, separated by colons
//   POWERLOSS_RECORDS  the folder for the records: one file for each inode, named after the inode's kind, number and birth time
//   POWERLOSS_STOP     the number of syncs after which the program is killed; 0 for never
//
// The file "count" in the folder for the records contains the number of syncs so far.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long count;

static int is_below_root(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    const char *roots = getenv("POWERLOSS_ROOTS");
    if (length <= 0 || roots == NULL) return 0;
    path[length] = 0;
    for (const char *root = roots; *root;) {
        size_t size = strcspn(root, ":");
        if (size > 0 && strncmp(path, root, size) == 0 && (path[size] == '/' || path[size] == 0)) return 1;
        root += size + (root[size] == ':');
    }
    return 0;
}

static void give_up(const char *what) {
    perror(what);
    _exit(99);
}

/// Writes "KIND.INODE.BIRTH.MODE" to `name`. The birth time is needed because inode numbers are reused.
static void name_of(char *name, size_t size, int folder, const char *entry, int *is_folder) {
    struct statx found;
    if (statx(folder, entry, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &found) != 0) {
        name[0] = 0;
        return;
    }
    *is_folder = S_ISDIR(found.stx_mode);
    const char kind = *is_folder ? 'd' : S_ISREG(found.stx_mode) ? 'f' : 'x';
    snprintf(name, size, "%c.%llu.%lld.%u.%o", kind, (unsigned long long)found.stx_ino, (long long)found.stx_btime.tv_sec,
             found.stx_btime.tv_nsec, found.stx_mode & 07777);
    // The mode can change, so it is not part of the identity. record() removes it from the name of the record.
}

/// Replaces the record of a file or folder with its current content.
static void record(int fd) {
    char name[128], path[4096];
    int is_folder = 0;
    name_of(name, sizeof name, fd, "", &is_folder);
    if (name[0] == 0) give_up("statx");
    *strrchr(name, '.') = 0;
    snprintf(path, sizeof path, "%s/new", getenv("POWERLOSS_RECORDS"));
    FILE *out = fopen(path, "w");
    if (out == NULL) give_up(path);
    if (is_folder) {
        int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *folder = again < 0 ? NULL : fdopendir(again);
        if (folder == NULL) give_up("fdopendir");
        for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
            char child[128];
            int ignored = 0;
            name_of(child, sizeof child, fd, entry->d_name, &ignored);
            if (child[0] != 0) fprintf(out, "%s %s%c", child, entry->d_name, 0);
        }
        closedir(folder);
    } else {
        // Use another descriptor, because this one may be write-only.
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        int again = open(link, O_RDONLY | O_CLOEXEC);
        if (again < 0) give_up("open");
        static char block[1 << 16];
        ssize_t got;
        while ((got = read(again, block, sizeof block)) > 0) fwrite(block, 1, (size_t)got, out);
        close(again);
    }
    if (fclose(out) != 0) give_up(path);
    char final[4096];
    snprintf(final, sizeof final, "%s/%s", getenv("POWERLOSS_RECORDS"), name);
    if (rename(path, final) != 0) give_up(final);
}

/// Syncs a file or folder. If it is a root or below a root, first records it, and kills the program after the number of syncs in POWERLOSS_STOP.
static int record_and_sync(int fd, int (*sync_call)(int)) {
    if (!is_below_root(fd)) return sync_call(fd);
    pthread_mutex_lock(&lock);
    // Record before the sync, because a sync guarantees only the bytes that were written before the sync began.
    record(fd);
    int result = sync_call(fd);
    count += 1;
    char path[4096];
    snprintf(path, sizeof path, "%s/count", getenv("POWERLOSS_RECORDS"));
    FILE *out = fopen(path, "w");
    if (out == NULL) give_up(path);
    fprintf(out, "%ld", count);
    fclose(out);
    const char *stop = getenv("POWERLOSS_STOP");
    if (stop != NULL && atol(stop) == count) {
        kill(getpid(), SIGKILL);
        pause();
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int fsync(int fd) { return record_and_sync(fd, (int (*)(int))dlsym(RTLD_NEXT, "fsync")); }
int fdatasync(int fd) { return record_and_sync(fd, (int (*)(int))dlsym(RTLD_NEXT, "fdatasync")); }
