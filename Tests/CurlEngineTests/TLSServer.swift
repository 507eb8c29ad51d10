import Foundation
import TransportSupport

/// A server that speaks TLS on a free port of the loopback interface, with a certificate for `localhost` of its own. Answers 200 to everything.
final class TLSServer: Sendable {
    let port: Int
    /// The certificate, in a file (PEM).
    let certificate: String
    /// The program ends when this is closed, and so also when the tests end in whatever way.
    private let input = Pipe()
    private let folder: URL

    private static let program = """
        import os, socket, ssl, sys, threading
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, sys.argv[1])
        context.load_cert_chain(sys.argv[2], sys.argv[3])
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        def serve(connection):
            try:
                with context.wrap_socket(connection, server_side=True) as stream:
                    while stream.recv(65536):
                        stream.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
            except OSError:
                pass
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
        """

    /// - Parameter version: The only version that it speaks, in Python's words, for example `TLSv1_3`.
    static func start(version: String) async throws -> TLSServer {
        // Waits for two programs.
        try await WorkerThreads(limit: 1).run { try TLSServer(version: version) }
    }

    private init(version: String) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "transferkit-tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        certificate = folder.appending(path: "certificate.pem").path
        let key = folder.appending(path: "key.pem").path
        let request = Process()
        request.executableURL = URL(filePath: "/usr/bin/env")
        request.arguments = [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext",
            "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate,
        ]
        request.standardError = FileHandle.nullDevice
        try request.run()
        request.waitUntilExit()

        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["python3", "-W", "ignore", "-c", Self.program, version, certificate, key]
        let output = Pipe()
        process.standardInput = input
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let text = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        struct DidNotStart: Error {}
        guard let port = Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) else { throw DidNotStart() }
        self.port = port
    }

    func stop() {
        try? input.fileHandleForWriting.close()
        try? FileManager.default.removeItem(at: folder)
    }
}
