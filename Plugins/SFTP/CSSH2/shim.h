// Wraps C declarations that Swift can't import: macros with casts, functions that newer versions of libssh2 replace, and pipe2(2).
#ifndef CSSH2_SHIM_H
#define CSSH2_SHIM_H

#include <fcntl.h>
#include <libssh2.h>
#include <stdint.h>
#include <sys/types.h>

#if LIBSSH2_VERSION_NUM < 0x010900
#error "libssh2 1.9.0 or later is required for SHA-256 fingerprints and keys of the type ed25519"
#endif

typedef ssize_t (*cssh2_receive_callback)(libssh2_socket_t socket, void *buffer, size_t length, int flags, void **context);
typedef ssize_t (*cssh2_send_callback)(libssh2_socket_t socket, const void *buffer, size_t length, int flags, void **context);
typedef void (*cssh2_disconnect_callback)(
    LIBSSH2_SESSION *session, int reason, const char *message, int message_length, const char *language, int language_length, void **context);
typedef int (*cssh2_sign_callback)(
    LIBSSH2_SESSION *session, unsigned char **signature, size_t *signature_length, const unsigned char *data, size_t data_length,
    void **context);
typedef void (*cssh2_prompt_callback)(
    const char *name, int name_length, const char *instruction, int instruction_length, int prompt_count,
    const LIBSSH2_USERAUTH_KBDINT_PROMPT *prompts, LIBSSH2_USERAUTH_KBDINT_RESPONSE *responses, void **context);

static inline void cssh2_set_callbacks(
    LIBSSH2_SESSION *session, cssh2_receive_callback receive, cssh2_send_callback send, cssh2_disconnect_callback disconnect) {
#if LIBSSH2_VERSION_NUM >= 0x010b01
    libssh2_session_callback_set2(session, LIBSSH2_CALLBACK_RECV, (libssh2_cb_generic *)receive);
    libssh2_session_callback_set2(session, LIBSSH2_CALLBACK_SEND, (libssh2_cb_generic *)send);
    libssh2_session_callback_set2(session, LIBSSH2_CALLBACK_DISCONNECT, (libssh2_cb_generic *)disconnect);
#else
    libssh2_session_callback_set(session, LIBSSH2_CALLBACK_RECV, (void *)receive);
    libssh2_session_callback_set(session, LIBSSH2_CALLBACK_SEND, (void *)send);
    libssh2_session_callback_set(session, LIBSSH2_CALLBACK_DISCONNECT, (void *)disconnect);
#endif
}

static inline int cssh2_has_data(LIBSSH2_CHANNEL *channel, int is_extended) {
#if LIBSSH2_VERSION_NUM >= 0x010b01
    unsigned long available = 0;
    libssh2_channel_window_read_ex(channel, &available, NULL);
    return available > 0;
#else
    return libssh2_poll_channel_read(channel, is_extended);
#endif
}

#ifdef __linux__
// glibc declares pipe2 only with _GNU_SOURCE, which Swift does not define.
static inline int cssh2_private_pipe(int descriptors[2]) {
    extern int pipe2(int descriptors[2], int flags);
    return pipe2(descriptors, O_CLOEXEC);
}
#endif

#endif
