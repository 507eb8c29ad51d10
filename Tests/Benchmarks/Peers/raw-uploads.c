// Sends many small files with hand-written tus requests over persistent connections. The rate of these uploads is an upper bound for the rate of any
// client with the same number of connections. The requests have the headers of common clients, because a server may need more time for the headers
// than for the content.
//
// Usage: raw-uploads PORT FOLDER BYTES CONNECTIONS single|pair. `single` sends one POST with the content (creation-with-upload). `pair`
// sends a POST and then a PATCH, like a client that does not support creation-with-upload. Each connection waits for a response before it
// sends its next request. Like any client, this program reads each file, with one `open` and one `read`.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int port, size, is_pair;
static char **files;
static int file_count;
static atomic_int next_file;

static void fail(const char *what) {
    fprintf(stderr, "raw-uploads: %s\n", what);
    exit(1);
}

/// Reads a response without a body. Returns its head, which is valid until the next call for this connection.
static const char *read_response(int socket, char *buffer, size_t capacity) {
    size_t filled = 0;
    for (;;) {
        buffer[filled] = 0;
        if (strstr(buffer, "\r\n\r\n") != NULL) break;
        ssize_t count = recv(socket, buffer + filled, capacity - filled - 1, 0);
        if (count <= 0) fail("The server closed the connection");
        filled += (size_t)count;
    }
    if (strncmp(buffer, "HTTP/1.1 20", 11) != 0) fail("The server rejected a request");
    return buffer;
}

static void send_all(int socket, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t sent = send(socket, bytes, count, MSG_NOSIGNAL);
        if (sent <= 0) fail("The connection broke");
        bytes += sent;
        count -= (size_t)sent;
    }
}

static void *work(void *context) {
    (void)context;
    int one = 1, socket_ = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((unsigned short)port)};
    if (connect(socket_, (struct sockaddr *)&address, sizeof address) < 0) fail("Cannot connect to the server");
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    char *request = malloc((size_t)size + 1024), response[8192], path[512];
    if (request == NULL) fail("Out of memory");
    for (int file = atomic_fetch_add(&next_file, 1); file < file_count; file = atomic_fetch_add(&next_file, 1)) {
        int head = snprintf(
            request, 1024,
            "POST /files/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: */*\r\nUser-Agent: raw-uploads\r\nTus-Resumable: 1.0.0\r\nUpload-Length: %d\r\n"
            "Upload-Metadata: filename MDAwMC5iaW4=,filetype YXBwbGljYXRpb24vb2N0ZXQtc3RyZWFt,"
            "transferid NWM2N2M4NDQtZjlkMi00NTFhLWEzMjktODJjNDVmNWIyMGFmLTAtMQ==\r\n%sContent-Length: %d\r\n\r\n", port, size,
            is_pair ? "" : "Content-Type: application/offset+octet-stream\r\n", is_pair ? 0 : size);
        if (is_pair) {
            send_all(socket_, request, (size_t)head);
            const char *location = strcasestr(read_response(socket_, response, sizeof response), "\nLocation: ");
            if (location == NULL) fail("The response has no Location");
            location += strlen("\nLocation: ");
            // The location may be a complete URL. Requests need only its path.
            if (strncmp(location, "http://", 7) == 0) location = strchrnul(location + 7, '/');
            if (sscanf(location, "%511s", path) != 1) fail("The Location is empty");
            head = snprintf(
                request, 1024,
                "PATCH %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: */*\r\nUser-Agent: raw-uploads\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n"
                "Content-Type: application/offset+octet-stream\r\nContent-Length: %d\r\n\r\n",
                path, port, size);
        }
        int descriptor = open(files[file], O_RDONLY);
        if (descriptor < 0 || read(descriptor, request + head, (size_t)size) != size) fail("Cannot read a file");
        close(descriptor);
        send_all(socket_, request, (size_t)(head + size));
        read_response(socket_, response, sizeof response);
    }
    free(request);
    close(socket_);
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 6) {
        fprintf(stderr, "usage: raw-uploads PORT FOLDER BYTES CONNECTIONS single|pair\n");
        return 2;
    }
    port = atoi(arguments[1]);
    size = atoi(arguments[3]);
    int connections = atoi(arguments[4]);
    is_pair = strcmp(arguments[5], "pair") == 0;
    DIR *folder = opendir(arguments[2]);
    if (folder == NULL) fail("Cannot read the folder");
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] == '.') continue;
        files = realloc(files, sizeof *files * (size_t)(file_count + 1));
        if (files == NULL || asprintf(&files[file_count++], "%s/%s", arguments[2], entry->d_name) < 0) fail("Out of memory");
    }
    pthread_t threads[64];
    if (connections < 1 || connections > 64) fail("CONNECTIONS must be 1 to 64");
    for (int index = 0; index < connections; index++) pthread_create(&threads[index], NULL, work, NULL);
    for (int index = 0; index < connections; index++) pthread_join(threads[index], NULL);
    return 0;
}
