import Foundation
import SSHFixture
import ScriptedHTTP
import Testing
import TransferCore
import TransferKit
import TransportSFTP

/// Ways to OpenSSH's server that are no connections of our own.
@Suite(.timeLimit(.minutes(10)))
struct SFTPRouteTests {
    /// Sends a file to the server under a name that can't be resolved, so that only the way that is asked for leads there.
    private func send(_ settings: (SFTPServerFolder) async throws -> [String: String]) async throws {
        let folder = try await SFTPServerFolder()
        let key = try #require(
            try await folder.transport.check(try folder.endpoint(), credentials: ReferencedCredentials()).hostKeyFingerprint)
        var endpoint = try folder.endpoint(["hostKey": key].merging(try await settings(folder)) { $1 })
        endpoint.address = endpoint.address.replacing("127.0.0.1", with: "sshd.invalid")
        let content = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        try content.write(to: folder.local.appending(path: "source"))
        _ = try await folder.move(.upload(try folder.source("source")), "received", at: endpoint)
        #expect(try Data(contentsOf: folder.files.appending(path: "received")) == content)
        await folder.close()
    }

    /// A program that copies between its input and output and a port of this machine.
    private static func relay(_ arguments: String) -> String {
        let script = """
            import os, socket, sys, threading
            s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
            def send():
                while data := os.read(0, 65536): s.sendall(data)
                s.shutdown(socket.SHUT_WR)
            threading.Thread(target=send, daemon=True).start()
            while data := s.recv(65536):
                while data: data = data[os.write(1, data):]
            """
        return "python3 -c '\(script)' \(arguments)"
    }

    @Test func aCommandLeadsThere() async throws {
        try await send { _ in ["proxyCommand": Self.relay("%p %h %r %%")] }
    }

    @Test func aCommandThatEndsAtOnceIsTold() async throws {
        let folder = try await SFTPServerFolder()
        let endpoint = try folder.endpoint(["proxyCommand": "false"])
        let error = await #expect(throws: TransferError.self) {
            try await folder.transport.check(endpoint, credentials: ReferencedCredentials())
        }
        #expect(error?.failureClass == .unreachable, "\(error?.description ?? "")")
        await folder.close()
    }

    @Test func whatMakesNoSenseIsRefused() async throws {
        let folder = try await SFTPServerFolder()
        for settings in [
            ["proxyCommand": "nc %h %p %x"], ["proxyCommand": "nc %h %"], ["proxyCommand": "nc %h %p", "proxy": "http://127.0.0.1:1"],
            ["proxy": "nonsense"],
            ["proxyUser": "me"],
        ] {
            let endpoint = try folder.endpoint(settings)
            #expect(throws: TransferError.self, "\(settings)") { try SFTPTransport.validate(endpoint) }
        }
        for address in ["sftp://me@a;b/in/", "sftp://a;b@host/in/", "sftp://-oProxyCommand=x@host/in/", "sftp://me@-v/in/"] {
            let endpoint = Endpoint.sftp(address, settings: ["proxyCommand": "ssh -W %h:%p %r@jump"])
            #expect(throws: TransferError.self, "\(address)") { try SFTPTransport.validate(endpoint) }
        }
        await folder.close()
    }

    @Test func aProxyLeadsThere() async throws {
        var proxy: PythonProcess?
        try await send { folder in
            let port = folder.server.port
            let started = try await PythonProcess.start { try PythonProcess("connect_proxy.py", ["\(port)"]) }
            proxy = started
            return ["proxy": "http://127.0.0.1:\(started.port)"]
        }
        proxy?.kill()
    }

    @Test func aProxyThatRefuses() async throws {
        let proxy = try ScriptedServer { _, _ in [.raw("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"), .close] }
        let folder = try await SFTPServerFolder()
        let endpoint = try folder.endpoint(["proxy": "http://127.0.0.1:\(proxy.port)"])
        let error = await #expect(throws: TransferError.self) {
            try await folder.transport.check(endpoint, credentials: ReferencedCredentials())
        }
        #expect(error?.failureClass == .unreachable)
        #expect(proxy.requests.map(\.method) == ["CONNECT"])
        #expect(proxy.requests.first?.path == "127.0.0.1:\(folder.server.port)")
        proxy.stop()
        await folder.close()
    }
}
