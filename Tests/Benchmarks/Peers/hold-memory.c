// Takes memory of the machine and gives nearly all of it back to the system, for the other programs: of each 2 MiB it keeps a page until its
// standard input ends. Prints the number of MiB when that is so.
//
// A virtual machine hands free memory back to its host, in large pieces, and who writes to such memory next pays for getting it again, which
// takes longer than all else. Free memory with a page in use in the midst stays with the machine.
//
//   hold-memory MEGABYTES
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
    size_t megabytes = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
    if (megabytes < 2) {
        fprintf(stderr, "usage: hold-memory MEGABYTES\n");
        return 2;
    }
    size_t size = megabytes << 20, piece = 2 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("hold-memory: mmap");
        return 1;
    }
    // In pages of the usual size: a large one would go, or stay, as a whole.
    madvise(memory, size, MADV_NOHUGEPAGE);
    memset(memory, 1, size);
    for (size_t start = 0; start + piece <= size; start += piece) madvise(memory + start + page, piece - page, MADV_DONTNEED);
    printf("%zu\n", megabytes);
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {}
    return 0;
}
