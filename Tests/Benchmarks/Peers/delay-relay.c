// Forwards loopback connections to another loopback port, with a delay, and optionally with a rate limit for each connection.
//
// Usage: delay-relay TARGET-PORT ONE-WAY-MILLISECONDS [BYTES-PER-SECOND]. Prints the port on which it listens. BYTES-PER-SECOND limits
// only the bytes to the target. The relay delays each block of bytes separately, so many blocks can be in flight, as on a long-distance
// connection.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// At most block_size × block_count bytes (64 MiB) are in flight in one direction. This is more than the product of delay and rate on each
// measured path.
enum { block_size = 64 * 1024, block_count = 1024 };

struct block {
    int64_t due;
    ssize_t size;  // 0 if the sender closed its side
    char bytes[block_size];
};

struct direction {
    int from, to;
    int64_t delay, rate;
    struct block *blocks;
    size_t head, filled;
    int is_broken;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct pair *pair;
};

struct pair {
    struct direction there, back;
    int sockets[2];
    int users;
    pthread_mutex_t mutex;
};

static int target_port;
static int64_t delay, rate;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void sleep_until(int64_t when) {
    struct timespec time = {.tv_sec = when / 1000000000, .tv_nsec = when % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {
    }
}

/// Called when one of the four threads of a pair of connections ends. The last of these threads closes the connections.
static void leave(struct pair *pair) {
    pthread_mutex_lock(&pair->mutex);
    int users = --pair->users;
    pthread_mutex_unlock(&pair->mutex);
    if (users > 0) return;
    close(pair->sockets[0]);
    close(pair->sockets[1]);
    free(pair->there.blocks);
    free(pair->back.blocks);
    free(pair);
}

/// Receives the bytes of one direction, and sets the time at which each block is due.
static void *receive(void *context) {
    struct direction *direction = context;
    for (int is_over = 0; !is_over;) {
        pthread_mutex_lock(&direction->mutex);
        while (direction->filled == block_count && !direction->is_broken) pthread_cond_wait(&direction->changed, &direction->mutex);
        struct block *block = &direction->blocks[(direction->head + direction->filled) % block_count];
        is_over = direction->is_broken;
        pthread_mutex_unlock(&direction->mutex);
        if (is_over) break;
        block->size = recv(direction->from, block->bytes, block_size, 0);
        if (block->size <= 0) {
            block->size = 0;
            is_over = 1;
        }
        block->due = now() + direction->delay;
        pthread_mutex_lock(&direction->mutex);
        direction->filled++;
        pthread_cond_signal(&direction->changed);
        pthread_mutex_unlock(&direction->mutex);
    }
    leave(direction->pair);
    return NULL;
}

/// Sends each block of one direction when it is due.
static void *deliver(void *context) {
    struct direction *direction = context;
    int64_t free_at = 0;
    for (;;) {
        pthread_mutex_lock(&direction->mutex);
        while (direction->filled == 0) pthread_cond_wait(&direction->changed, &direction->mutex);
        struct block *block = &direction->blocks[direction->head];
        pthread_mutex_unlock(&direction->mutex);
        sleep_until(block->due > free_at ? block->due : free_at);
        if (direction->rate > 0) free_at = (free_at > now() ? free_at : now()) + block->size * 1000000000 / direction->rate;
        if (block->size == 0) {
            shutdown(direction->to, SHUT_WR);
            break;
        }
        ssize_t sent = 0;
        while (sent < block->size) {
            ssize_t count = send(direction->to, block->bytes + sent, (size_t)(block->size - sent), MSG_NOSIGNAL);
            if (count <= 0) break;
            sent += count;
        }
        pthread_mutex_lock(&direction->mutex);
        direction->is_broken = sent < block->size;
        direction->head = (direction->head + 1) % block_count;
        direction->filled--;
        pthread_cond_signal(&direction->changed);
        pthread_mutex_unlock(&direction->mutex);
        if (direction->is_broken) {
            shutdown(direction->from, SHUT_RDWR);
            break;
        }
    }
    leave(direction->pair);
    return NULL;
}

static void begin(struct direction *direction, struct pair *pair, int from, int to, int64_t direction_rate) {
    direction->from = from;
    direction->to = to;
    direction->delay = delay;
    direction->rate = direction_rate;
    direction->blocks = malloc(sizeof(struct block) * block_count);
    direction->pair = pair;
    if (direction->blocks == NULL) exit(1);
    pthread_mutex_init(&direction->mutex, NULL);
    pthread_cond_init(&direction->changed, NULL);
    pthread_t thread;
    for (int index = 0; index < 2; index++) {
        if (pthread_create(&thread, NULL, index == 0 ? receive : deliver, direction) != 0) exit(1);
        pthread_detach(thread);
    }
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: delay-relay TARGET-PORT ONE-WAY-MILLISECONDS [BYTES-PER-SECOND]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    target_port = atoi(arguments[1]);
    delay = (int64_t)atoi(arguments[2]) * 1000000;
    rate = count > 3 ? atoll(arguments[3]) : 0;
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 1024) < 0) {
        perror("delay-relay");
        return 1;
    }
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        int client = accept(listener, NULL, NULL);
        if (client < 0) continue;
        int server = socket(AF_INET, SOCK_STREAM, 0);
        address.sin_port = htons((unsigned short)target_port);
        struct pair *pair = calloc(1, sizeof *pair);
        if (pair == NULL || connect(server, (struct sockaddr *)&address, sizeof address) < 0) {
            close(client);
            close(server);
            free(pair);
            continue;
        }
        setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        pair->sockets[0] = client;
        pair->sockets[1] = server;
        pair->users = 4;
        pthread_mutex_init(&pair->mutex, NULL);
        begin(&pair->there, pair, client, server, rate);
        begin(&pair->back, pair, server, client, 0);
    }
}
