// Swift can't call libcurl's variadic functions. This header wraps them in one typed function per type of value.
#ifndef CCURL_SHIM_H
#define CCURL_SHIM_H

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#if LIBCURL_VERSION_NUM < 0x075700
#error "libcurl 7.87.0 or later is required for CURLOPT_QUICK_EXIT"
#endif

// The types of libcurl's callbacks. The read, write and header callbacks all have the type ccurl_data_callback.
typedef size_t (*ccurl_data_callback)(char *bytes, size_t size, size_t count, void *context);
typedef int (*ccurl_progress_callback)(
    void *context, curl_off_t download_total, curl_off_t downloaded, curl_off_t upload_total, curl_off_t uploaded);
typedef int (*ccurl_prereq_callback)(void *context, char *remote_ip, char *local_ip, int remote_port, int local_port);

static inline CURLcode ccurl_setopt_long(CURL *easy, CURLoption option, long value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode ccurl_setopt_offset(CURL *easy, CURLoption option, curl_off_t value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode ccurl_setopt_string(CURL *easy, CURLoption option, const char *value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode ccurl_setopt_pointer(CURL *easy, CURLoption option, void *value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode ccurl_setopt_list(CURL *easy, CURLoption option, struct curl_slist *value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode ccurl_setopt_data_callback(CURL *easy, CURLoption option, ccurl_data_callback value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode ccurl_setopt_progress_callback(CURL *easy, ccurl_progress_callback value) { return curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, value); }
static inline CURLcode ccurl_setopt_prereq_callback(CURL *easy, ccurl_prereq_callback value) { return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, value); }
static inline CURLcode ccurl_setopt_trailer_callback(CURL *easy, curl_trailer_callback value) { return curl_easy_setopt(easy, CURLOPT_TRAILERFUNCTION, value); }

// Opens a socket for a connection. Returns CURL_SOCKET_BAD if that fails.
//
// Programs that this process starts must not inherit the socket, but libcurl opens sockets without close-on-exec. Like `DescriptorLimit` in
// TransferCore, this function keeps the highest descriptors free for the system's libraries: 32, or an eighth of the limit if that is fewer. If no
// other descriptor is free, it sets the int at `context` to 1. libcurl then reports a refused connection, so only this int shows the true cause.
static inline curl_socket_t ccurl_open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)purpose;
#ifdef SOCK_CLOEXEC
    curl_socket_t descriptor = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
#else
    curl_socket_t descriptor = socket(address->family, address->socktype, address->protocol);
    if (descriptor >= 0) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
#endif
    struct rlimit limit;
    if (descriptor >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        rlim_t reserve = limit.rlim_cur / 8 < 32 ? limit.rlim_cur / 8 : 32;
        if ((rlim_t)descriptor >= limit.rlim_cur - reserve) {
            close(descriptor);
            errno = EMFILE;
            descriptor = CURL_SOCKET_BAD;
        }
    }
    if (descriptor < 0 && (errno == EMFILE || errno == ENFILE)) *(int *)context = 1;
    return descriptor;
}
static inline void ccurl_setopt_open_socket(CURL *easy, int *lacks_descriptors) {
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, ccurl_open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, lacks_descriptors);
}

static inline CURLcode ccurl_getinfo_long(CURL *easy, CURLINFO info, long *value) { return curl_easy_getinfo(easy, info, value); }
static inline CURLcode ccurl_getinfo_offset(CURL *easy, CURLINFO info, curl_off_t *value) { return curl_easy_getinfo(easy, info, value); }
static inline CURLcode ccurl_getinfo_string(CURL *easy, CURLINFO info, char **value) { return curl_easy_getinfo(easy, info, value); }
static inline CURLcode ccurl_getinfo_pointer(CURL *easy, CURLINFO info, void **value) { return curl_easy_getinfo(easy, info, value); }
static inline CURLcode ccurl_getinfo_socket(CURL *easy, curl_socket_t *value) { return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, value); }

static inline CURLMcode ccurl_multi_setopt_long(CURLM *multi, CURLMoption option, long value) { return curl_multi_setopt(multi, option, value); }
static inline CURLSHcode ccurl_share_setopt_data(CURLSH *share, curl_lock_data data) { return curl_share_setopt(share, CURLSHOPT_SHARE, data); }

// Returns the result of a finished transfer. Swift can't read it, because Swift imports the union that contains the result as raw storage.
static inline CURLcode ccurl_message_result(const CURLMsg *message) { return message->data.result; }

#ifdef __linux__
// glibc declares this function only if _GNU_SOURCE is defined.
extern ssize_t preadv2(int descriptor, const struct iovec *vectors, int count, off_t offset, int flags);

/// Reads like pread(2), but only from the page cache. Fails with EAGAIN instead of waiting for a disk, and with EOPNOTSUPP if the file system does
/// not support this.
static inline ssize_t ccurl_read_cached(int descriptor, void *bytes, size_t count, off_t offset) {
    struct iovec vector = {bytes, count};
    return preadv2(descriptor, &vector, 1, offset, 0x00000008 /* RWF_NOWAIT */);
}
#endif

#endif
