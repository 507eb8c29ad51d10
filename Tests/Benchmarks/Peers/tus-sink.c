// A server that receives bytes as fast as a socket delivers them, and discards them. The server gives an upper bound for the speed of uploads.
//
// Implements the part of tus 1.0.0 that a correct client needs: OPTIONS, POST with Upload-Length or a concatenation, HEAD, PATCH and
// DELETE. Also implements PUT for `curl -T`, and the creation of a complete upload according to interop version 10 of the IETF
// protocol Resumable Uploads for HTTP. Uses one thread for each connection.
//
// Usage: tus-sink [PORT]. Without PORT, uses a free port. Prints the port on which it listens.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { head_limit = 64 * 1024, discard_size = 512 * 1024, upload_limit = 1 << 20 };

struct upload {
    long long length;
    _Atomic long long offset;
};
static struct upload uploads[upload_limit];
static _Atomic long upload_count;

struct request {
    char method[16];
    long upload;  // -1 if the path names no upload
    long long content_length, upload_length, upload_offset;
    int expects_continue, closes, is_ietf;
    long long concatenated;  // the number of bytes in all segments of a concatenation; -1 for any other request
};

static long long number_after(const char *head, const char *name, long long missing) {
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, strlen(name)) == 0) return atoll(line + 2 + strlen(name));
    }
    return missing;
}

static int has_line(const char *head, const char *start) {
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, start, strlen(start)) == 0) return 1;
    }
    return 0;
}

/// Returns the total size of the segments in "Upload-Concat: final;/files/1 /files/2", or -1 without that header.
static long long concatenated(const char *head) {
    const char *line = strcasestr(head, "\r\nUpload-Concat: final;");
    if (line == NULL) return -1;
    long long sum = 0;
    for (const char *at = line + 23; *at != 0 && *at != '\r'; at++) {
        if (*at == '/' && at[1] >= '0' && at[1] <= '9') {
            long segment = atol(at + 1);
            if (segment < atomic_load(&upload_count)) sum += uploads[segment].length;
        }
    }
    return sum;
}

static struct request parse(const char *head) {
    struct request request = {.upload = -1};
    char path[1024] = "";
    sscanf(head, "%15s %1023s", request.method, path);
    const char *name = strrchr(path, '/');
    if (name != NULL && name[1] >= '0' && name[1] <= '9') request.upload = atol(name + 1);
    if (request.upload >= atomic_load(&upload_count)) request.upload = -1;
    request.content_length = number_after(head, "Content-Length:", 0);
    request.upload_length = number_after(head, "Upload-Length:", 0);
    request.upload_offset = number_after(head, "Upload-Offset:", -1);
    request.expects_continue = has_line(head, "Expect: 100-continue");
    request.closes = has_line(head, "Connection: close");
    request.is_ietf = has_line(head, "Upload-Draft-Interop-Version: 10");
    request.concatenated = concatenated(head);
    return request;
}

static int send_all(int socket, const char *text, int length) {
    while (length > 0) {
        ssize_t sent = send(socket, text, (size_t)length, MSG_NOSIGNAL);
        if (sent <= 0) return -1;
        text += sent;
        length -= (int)sent;
    }
    return 0;
}

static int respond(int socket, const char *status, const char *more) {
    char text[1024];
    int length = snprintf(text, sizeof text, "HTTP/1.1 %s\r\nTus-Resumable: 1.0.0\r\n%sContent-Length: 0\r\n\r\n", status, more);
    return send_all(socket, text, length);
}

/// Reads and discards the body, of which `early` bytes arrived with the head. Returns the number of received bytes.
static long long discard(int socket, char *buffer, long long length, long long early, _Atomic long long *offset) {
    long long got = early < length ? early : length;
    if (offset != NULL) atomic_fetch_add(offset, got);
    while (got < length) {
        long long wanted = length - got < discard_size ? length - got : discard_size;
        ssize_t count = recv(socket, buffer, (size_t)wanted, 0);
        if (count <= 0) break;
        got += count;
        if (offset != NULL) atomic_fetch_add(offset, count);
    }
    return got;
}

static int serve(int socket, const struct request *request, char *buffer, long long early) {
    char more[256] = "";
    if (request->expects_continue && send_all(socket, "HTTP/1.1 100 Continue\r\n\r\n", 25) < 0) return -1;
    if (strcmp(request->method, "OPTIONS") == 0) {
        return respond(socket, "204 No Content", "Tus-Version: 1.0.0\r\nTus-Extension: creation,creation-with-upload,concatenation,termination\r\n"
                                               "Upload-Draft-Interop-Version: 10\r\nUpload-Limit: max-size=1099511627776\r\n");
    }
    if (strcmp(request->method, "POST") == 0) {
        long upload = atomic_fetch_add(&upload_count, 1);
        if (upload >= upload_limit) return -1;
        uploads[upload].length = request->concatenated >= 0 ? request->concatenated : request->upload_length;
        if (request->concatenated >= 0) atomic_store(&uploads[upload].offset, request->concatenated);
        if (request->is_ietf) {
            int length = snprintf(
                more, sizeof more,
                "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: 10\r\nLocation: /files/%ld\r\n\r\n", upload);
            if (send_all(socket, more, length) < 0) return -1;
            if (discard(socket, buffer, request->content_length, early, &uploads[upload].offset) < request->content_length) return -1;
            snprintf(
                more, sizeof more, "Location: /files/%ld\r\nUpload-Draft-Interop-Version: 10\r\nUpload-Complete: ?1\r\nUpload-Offset: %lld\r\n",
                upload, atomic_load(&uploads[upload].offset));
            return respond(socket, "201 Created", more);
        }
        if (discard(socket, buffer, request->content_length, early, &uploads[upload].offset) < request->content_length) return -1;
        snprintf(
            more, sizeof more, "Location: /files/%ld\r\nUpload-Offset: %lld\r\n", upload, atomic_load(&uploads[upload].offset));
        return respond(socket, "201 Created", more);
    }
    if (strcmp(request->method, "PUT") == 0) {
        if (discard(socket, buffer, request->content_length, early, NULL) < request->content_length) return -1;
        return respond(socket, "204 No Content", "");
    }
    if (request->upload < 0) return respond(socket, "404 Not Found", "");
    struct upload *upload = &uploads[request->upload];
    if (strcmp(request->method, "DELETE") == 0) return respond(socket, "204 No Content", "");
    if (strcmp(request->method, "HEAD") == 0) {
        snprintf(
            more, sizeof more, "Upload-Offset: %lld\r\nUpload-Length: %lld\r\nCache-Control: no-store\r\n", atomic_load(&upload->offset),
            upload->length);
        return respond(socket, "200 OK", more);
    }
    if (strcmp(request->method, "PATCH") == 0) {
        if (request->upload_offset != atomic_load(&upload->offset)) return respond(socket, "409 Conflict", "Connection: close\r\n"), -1;
        if (discard(socket, buffer, request->content_length, early, &upload->offset) < request->content_length) return -1;
        snprintf(more, sizeof more, "Upload-Offset: %lld\r\n", atomic_load(&upload->offset));
        return respond(socket, "204 No Content", more);
    }
    return respond(socket, "405 Method Not Allowed", "");
}

static void *connection(void *context) {
    int socket = (int)(long)context;
    char *head = malloc(head_limit + 1), *buffer = malloc(discard_size);
    size_t filled = 0;
    int one = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    while (head != NULL && buffer != NULL) {
        head[filled] = 0;
        char *end = strstr(head, "\r\n\r\n");
        if (end == NULL) {
            if (filled == head_limit) break;
            ssize_t count = recv(socket, head + filled, head_limit - filled, 0);
            if (count <= 0) break;
            filled += (size_t)count;
            continue;
        }
        *end = 0;
        struct request request = parse(head);
        size_t head_size = (size_t)(end + 4 - head);
        long long early = (long long)(filled - head_size);
        if (serve(socket, &request, buffer, early) < 0 || request.closes) break;
        size_t used = early < request.content_length ? (size_t)early : (size_t)request.content_length;
        memmove(head, head + head_size + used, filled - head_size - used);
        filled -= head_size + used;
    }
    free(head);
    free(buffer);
    close(socket);
    return NULL;
}

int main(int count, char **arguments) {
    signal(SIGPIPE, SIG_IGN);
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (count > 1) address.sin_port = htons((unsigned short)atoi(arguments[1]));
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 1024) < 0) {
        perror("tus-sink");
        return 1;
    }
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        int socket = accept(listener, NULL, NULL);
        pthread_t thread;
        if (socket < 0) continue;
        if (pthread_create(&thread, NULL, connection, (void *)(long)socket) != 0) close(socket);
        else pthread_detach(thread);
    }
}
