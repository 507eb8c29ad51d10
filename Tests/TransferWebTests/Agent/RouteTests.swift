import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Runs an agent in a separate network namespace, which begins without any route.
@Suite(.timeLimit(.minutes(5)), .enabled(if: geteuid() == 0)) struct RouteTests {
    @Test func `a new route wakes a session that waits for its server`() async throws {
        let folder = FilePath(NSTemporaryDirectory()).appending("route-\(UUID().uuidString)")
        let (store, served, received) = (folder.appending("store"), folder.appending("served"), folder.appending("received"))
        for folder in [served, received] {
            try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        }
        defer { try? FileManager.default.removeItem(atPath: folder.string) }
        try Data(repeating: 7, count: 1_000).write(to: URL(fileURLWithPath: served.appending("file").string))
        // The script performs the commands of the test in the namespace, and ends its programs when the test ends.
        let script = """
            "$0" agent run --store "$1" & agent=$!
            /usr/bin/python3 -m http.server --bind 0.0.0.0 --directory "$2" 8000 & server=$!
            trap 'kill $agent $server' EXIT
            echo ready
            while read -r line; do eval "$line"; done
            """
        let program = try StartedProgram(
            "unshare", ["-n", "sh", "-c", script, Commands.path, store.string, served.string],
            errors: folder.appending("errors"))
        defer { program.closeInput() }
        #expect(try await LineReader(program).next() == "ready")
        let queue = RemoteTransferQueue(folder: store)
        while (try? await queue.status()) == nil {}
        try await Commands.run(["account", "add", "far", "http+get://10.9.9.9:8000/{path}"], store: store)
        var events = queue.events(since: 0).makeAsyncIterator()
        try await Commands.run(["download", "far", "file", "--to", received.string], store: store)
        // Each failed attempt doubles the delay of the next one.
        var retryAt: Date?
        while retryAt == nil, let event = try await events.next() {
            if case .attemptFailed(_, _, let date) = event.kind, date.timeIntervalSince(event.time) >= 3 { retryAt = date }
        }
        let due = try #require(retryAt)
        try program.write("ip link set lo up; ip link add far type dummy; ip address add 10.9.9.9/24 dev far; ip link set far up\n")
        var completed: Date?
        while completed == nil, let event = try await events.next() {
            if case .completed = event.kind { completed = event.time }
        }
        #expect(try #require(completed) < due)
        #expect(FileManager.default.fileExists(atPath: received.appending("file").string))
    }
}
