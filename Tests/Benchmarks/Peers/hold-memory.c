// Prevents a virtual machine from returning free memory to its host during a benchmark.
//
// Allocates memory, and returns nearly all of it to the system for use by other programs. Keeps one page of each 2 MiB until its standard
// input ends. Prints the number of MiB when the memory is ready.
//
// A virtual machine returns free memory to its host in large blocks. A program that later writes to such memory would wait until the host
// provides the memory again. This wait takes longer than the measured work. The machine does not return a block that contains a used
// page.
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
    size_t size = megabytes << 20, block = 2 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("hold-memory: mmap");
        return 1;
    }
    // Use small pages, because a huge page can only be returned or kept as a whole.
    madvise(memory, size, MADV_NOHUGEPAGE);
    memset(memory, 1, size);
    for (size_t start = 0; start + block <= size; start += block) madvise(memory + start + page, block - page, MADV_DONTNEED);
    printf("%zu\n", megabytes);
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {}
    return 0;
}
