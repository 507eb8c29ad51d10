import Foundation
import Locking
import ProcessFixture
import SSHFixture
import ScriptedHTTP
import Testing
import TransferCore
import TransferKit
import TransportSFTP

@Suite(.timeLimit(.minutes(10)))
struct SFTPRouteTests {
    /// Uploads a file to a host name that does not resolve, so that only the configured route can reach the server.
    private func send(_ settings: (SFTPServerFolder) async throws -> [String: String]) async throws {
        let folder = try await SFTPServerFolder()
        let key = try #require(
            try await folder.transport.check(try folder.endpoint(), credentials: ReferencedCredentials()).hostKeyFingerprint)
        var endpoint = try folder.endpoint(["hostKey": key].merging(try await settings(folder)) { $1 })
        endpoint.address = endpoint.address.replacing("127.0.0.1", with: "sshd.invalid")
        let content = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        try content.write(to: folder.local.appending(path: "source"))
        _ = try await folder.transfer(.upload(try folder.source("source")), "received", at: endpoint)
        #expect(try Data(contentsOf: folder.files.appending(path: "received")) == content)
        await folder.close()
    }

    /// A command that connects its standard input and output to a local port.
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

    @Test func connectsThroughCommand() async throws {
        try await send { _ in ["proxyCommand": Self.relay("%p %h %r %%")] }
    }

    @Test func reportsCommandThatExits() async throws {
        let folder = try await SFTPServerFolder()
        let endpoint = try folder.endpoint(["proxyCommand": "false"])
        let error = await #expect(throws: TransferError.self) {
            try await folder.transport.check(endpoint, credentials: ReferencedCredentials())
        }
        #expect(error?.failureClass == .unreachable, "\(error?.description ?? "")")
        await folder.close()
    }

    @Test func rejectsInvalidRoutes() async throws {
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
            let endpoint = Endpoint(transport: .sftp, address: address, settings: ["proxyCommand": "ssh -W %h:%p %r@jump"])
            #expect(throws: TransferError.self, "\(address)") { try SFTPTransport.validate(endpoint) }
        }
        await folder.close()
    }

    @Test func connectsThroughHTTPProxy() async throws {
        var proxy: PythonProcess?
        try await send { folder in
            let port = folder.server.port
            let started = try await PythonProcess.runBlocking { try PythonProcess("connect_proxy.py", ["\(port)"]) }
            proxy = started
            return ["proxy": "http://127.0.0.1:\(started.port)"]
        }
        proxy?.kill()
    }

    @Test func reportsProxyRefusal() async throws {
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

    /// Connects through OpenSSH's client and a second OpenSSH server (ssh(1), option `-W`).
    @Test func connectsThroughJumpHost() async throws {
        let jump = try await SSHServerProcess.start(options: ["LogLevel DEBUG1"])
        let folder = try await SFTPServerFolder()
        let command =
            "ssh -F none -o BatchMode=yes -o IdentityAgent=none -o StrictHostKeyChecking=yes -o UserKnownHostsFile=\(try jump.knownHosts()) "
            + "-i \(jump.userKey) -p \(jump.port) -W %h:%p \(jump.user)@127.0.0.1"
        let endpoint = try folder.endpoint(["proxyCommand": command])
        let content = Data.nonRepeating(3_000_000)
        try content.write(to: folder.local.appending(path: "source"))
        _ = try await folder.transfer(.upload(try folder.source("source")), "file", at: endpoint)
        _ = try await folder.transfer(.download(folder.destination("received")), "file", at: endpoint)
        #expect(try Data(contentsOf: folder.files.appending(path: "file")) == content)
        #expect(try Data(contentsOf: folder.local.appending(path: "received")) == content)
        #expect(jump.log.contains("direct-tcpip"), "\(jump.log)")
        try await jump.crash()
        let error = await #expect(throws: TransferError.self) {
            try await folder.transport.check(try folder.endpoint(["proxyCommand": command]), credentials: ReferencedCredentials())
        }
        #expect(error?.failureClass == .unreachable, "\(error?.description ?? "")")
        await folder.close()
    }

    /// The client does not resolve the host name. It sends the name to the proxy, which must resolve it.
    @Test func connectsThroughSOCKSProxy() async throws {
        let requestedHosts = Locked<[String]>([])
        var proxy: RawServer?
        try await send { folder in
            // RFC 1928, sections 3 to 6.
            let started = try RawServer.relay(to: folder.server.port) { client in
                guard client.receive().first == 5, client.send([5, 0]) else { return false }
                let request = client.receive()
                guard request.starts(with: [5, 1, 0, 3]), request.count > 5 else { return false }
                requestedHosts.withLock { $0.append(String(decoding: request[5...].prefix(Int(request[4])), as: UTF8.self)) }
                return client.send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
            }
            proxy = started
            return ["proxy": "socks5h://127.0.0.1:\(started.port)"]
        }
        #expect(requestedHosts.withLock { $0 } == ["sshd.invalid"])
        proxy?.stop()
    }

    @Test func usesInterfaceAndAddressFamily() async throws {
        let folder = try await SFTPServerFolder()
        func check(_ settings: [String: String], host: String = "127.0.0.1") async throws {
            var endpoint = try folder.endpoint(settings)
            endpoint.address = endpoint.address.replacing("127.0.0.1", with: host)
            _ = try await folder.transport.check(endpoint, credentials: ReferencedCredentials())
        }
        try await check([:])
        #expect(!folder.server.log.contains("Connection from 127.0.0.2"))
        try await check(["interface": "127.0.0.2"])
        #expect(folder.server.log.contains("Connection from 127.0.0.2"), "\(folder.server.log)")
        let known = ["hostKey": "accept-new", "knownHosts": folder.local.appending(path: "known").path]
        try await check(known.merging(["addressFamily": "ipv4"]) { $1 }, host: "localhost")
        // localhost also resolves to ::1, where no process listens on this port.
        let error = await #expect(throws: TransferError.self) {
            try await check(known.merging(["addressFamily": "ipv6"]) { $1 }, host: "localhost")
        }
        #expect(error?.failureClass == .unreachable, "\(error?.description ?? "")")
        await folder.close()
    }
}
