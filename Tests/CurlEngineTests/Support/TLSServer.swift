import Foundation
import Glibc
import ProcessFixture
import TransportSupport

/// A TLS server on a free port of the loopback interface, with a self-signed certificate for `localhost`. It always responds with 200. Over
/// HTTP/1.1, the header `X-Connection` contains the number of the connection, counted from 1, and `X-Client` the subject of the client certificate,
/// if the server requires a certificate. Responses over HTTP/2 have no headers.
final class TLSServer: Sendable {
    let port: Int
    /// The certificate file (PEM).
    let certificate: String
    let key: String
    private let server: StartedProgram
    private let folder: URL

    private static let program = """
        import itertools, os, socket, ssl, sys, threading
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, sys.argv[1])
        context.load_cert_chain(sys.argv[2], sys.argv[3])
        context.set_alpn_protocols(sys.argv[4].split(","))
        if sys.argv[5]:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(sys.argv[5])
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)

        def frame(kind, flags, number, payload=b""):
            return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + number.to_bytes(4, "big") + payload

        # The subset of HTTP/2 (RFC 9113) that is needed to respond to requests without a body.
        def serve_http2(stream):
            data = b""
            def take(count):
                nonlocal data
                while len(data) < count:
                    more = stream.recv(65536)
                    if not more:
                        raise OSError
                    data += more
                taken, data = data[:count], data[count:]
                return taken
            take(24)
            stream.sendall(frame(4, 0, 0))
            while True:
                head = take(9)
                take(int.from_bytes(head[:3], "big"))
                if head[3] == 4 and not head[4] & 1:
                    stream.sendall(frame(4, 1, 0))
                if head[3] == 1:
                    # ":status: 200" in HPACK's static table.
                    stream.sendall(frame(1, 5, int.from_bytes(head[5:], "big"), b"\\x88"))

        def serve(connection, number):
            try:
                stream = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                try:
                    stream.do_handshake()
                except ssl.SSLError:
                    # Closing a connection with unread bytes would reset it, and the client would not receive the alert.
                    refused = socket.socket(fileno=stream.detach())
                    refused.shutdown(socket.SHUT_WR)
                    while refused.recv(65536):
                        pass
                    return
                with stream:
                    if stream.selected_alpn_protocol() == "h2":
                        return serve_http2(stream)
                    client = (stream.getpeercert() or {}).get("subject", "")
                    while stream.recv(65536):
                        stream.sendall(f"HTTP/1.1 200 OK\\r\\nX-Connection: {number}\\r\\nX-Client: {client}\\r\\nContent-Length: 0\\r\\n\\r\\n".encode())
            except OSError:
                pass
        for number in itertools.count(1):
            threading.Thread(target=serve, args=(listener.accept()[0], number), daemon=True).start()
        """

    /// - Parameters:
    ///   - version: The only supported version, as named by Python, for example `TLSv1_3`.
    ///   - protocols: The supported application protocols, for example `h2` (RFC 7301).
    ///   - clientAuthority: A file with the accepted client certificates, or nil to accept all clients.
    static func start(version: String = "TLSv1_3", protocols: String = "http/1.1", clientAuthority: String? = nil) async throws -> TLSServer
    {
        // This call blocks while two child processes run, so it needs a separate thread.
        try await WorkerThreads(limit: 1).run { try TLSServer(version: version, protocols: protocols, clientAuthority: clientAuthority) }
    }

    private init(version: String, protocols: String, clientAuthority: String?) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "transferkit-tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        certificate = folder.appending(path: "certificate.pem").path
        key = folder.appending(path: "key.pem").path
        _ = try openssl([
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate,
        ])

        server = try StartedProgram(
            "python3", ["-W", "ignore", "-c", Self.program, version, certificate, key, protocols, clientAuthority ?? ""])
        struct DidNotStart: Error {}
        guard let port = try server.readPort() else { throw DidNotStart() }
        self.port = port
    }

    var url: String { "https://localhost:\(port)/" }

    func stop() {
        server.kill()
        try? FileManager.default.removeItem(at: folder)
    }
}

/// Runs `openssl`, and returns its output. Blocks, so it must not be called on the cooperative pool.
func openssl(_ arguments: [String], input: Data = Data()) throws -> Data {
    struct Failed: Error {
        let arguments: [String]
    }
    let (status, output) = try StartedProgram.run("openssl", arguments, input: input)
    guard status == 0 else { throw Failed(arguments: arguments) }
    return output
}
