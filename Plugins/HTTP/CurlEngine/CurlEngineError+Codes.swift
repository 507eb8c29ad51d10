import CCurl

extension CurlEngineError {
    /// Creates an error from libcurl's code for a failed transfer (libcurl-errors(3)).
    init(_ code: CURLcode, text: String) {
        let (kind, message): (Kind, String) =
            switch code {
            case CURLE_SSL_CONNECT_ERROR where Self.isAboutClientCertificate(text),
                CURLE_RECV_ERROR where Self.isAboutClientCertificate(text),
                CURLE_SEND_ERROR where Self.isAboutClientCertificate(text):
                (.clientCertificateUnusable, "The server does not accept the client certificate, or requires one.")
            case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
                (.hostNotFound, "The server's name can't be resolved.")
            case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED, CURLE_PROXY:
                (.refused, "The server can't be reached.")
            case CURLE_OPERATION_TIMEDOUT:
                (.timedOut, "The connection was not established in time.")
            case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS:
                (.tlsNotTrusted, "The server's certificate is not trusted.")
            case CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE:
                (.certificateFileUnusable, "The file of trusted certificates can't be used.")
            case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CLIENTCERT:
                (.clientCertificateUnusable, "The client certificate is missing or can't be used.")
            case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED:
                (.tlsFailed, "The TLS handshake with the server failed.")
            // A reset stream or a GOAWAY interrupts an HTTP/2 request, just as a closed connection interrupts an HTTP/1.1 request.
            case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_SSL_SHUTDOWN_FAILED, CURLE_HTTP2,
                CURLE_HTTP2_STREAM:
                (.connectionLost, "The connection broke.")
            case CURLE_SEND_FAIL_REWIND:
                (.outcomeUnknown, "The connection broke after the request was sent, before any response arrived.")
            case CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING:
                (.invalidResponse, "The server's response is not valid HTTP.")
            case CURLE_UNSUPPORTED_PROTOCOL:
                // libcurl also reports this for HTTP/0.9, that is, for a response without a status line.
                (.invalidResponse, "The server does not speak HTTP, or the URL's scheme is not http or https.")
            case CURLE_URL_MALFORMAT, CURLE_LOGIN_DENIED:
                (.invalidRequest, "The URL can't be used; it must be an http or https URL without a user name or password.")
            case CURLE_OUT_OF_MEMORY:
                (.outOfResources, "This machine is out of memory or file descriptors.")
            default:
                (.other, "The request failed.")
            }
        self.init(kind, message, cause: text)
        isHTTP2Failure = code == CURLE_HTTP2 || code == CURLE_HTTP2_STREAM
    }

    /// Returns whether OpenSSL reports that the server sent an alert about a certificate (RFC 8446, section 6.2). Such an alert is always about
    /// the client's certificate. With TLS 1.3, the alert arrives after the handshake, and libcurl reports a broken connection.
    private static func isAboutClientCertificate(_ text: String) -> Bool {
        text.contains(" alert ") && (text.contains("certificate") || text.contains("unknown ca"))
    }

    /// Whether libcurl or OpenSSL reports that the connection ended during the TLS handshake, without an alert from the server.
    var isHandshakeCut: Bool {
        guard kind == .tlsFailed, let cause else { return false }
        return ["unexpected eof", "SSL_ERROR_SYSCALL", "SSL_ERROR_ZERO_RETURN", "Connection reset", "Broken pipe"].contains(
            where: cause.contains)
    }
}
