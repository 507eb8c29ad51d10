import Foundation
import SystemPackage
import Testing
import TransferCore

#if canImport(Glibc)
    import Glibc
#endif

/// The program is started with closed standard streams. Without a safeguard, the next file that the program opens would get the descriptor
/// of a closed stream.
@Suite struct StandardStreamTests {
    @Test(arguments: ["<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"]) func closedStreamsDoNotDamageDatabase(
        redirections: String
    ) async throws {
        let program = try TransferQ()
        let file = try program.folder.file("a", size: 1_000)
        // A command that can't write its output fails.
        let expectedStatus = redirections.split(separator: " ").contains(">&-") ? 1 : 0
        // If a database file or the lock file had the descriptor of a stream, the output would overwrite the file.
        let script = """
            "$0" account add studio http://127.0.0.1:9/ \(redirections) &&
            "$0" add studio a missing \(redirections); test $? = 2 || exit 10
            "$0" add studio a --each a a --json \(redirections); test $? = \(expectedStatus) || exit 11
            "$0" list --json \(redirections); test $? = \(expectedStatus) || exit 12
            "$0" help \(redirections); test $? = \(expectedStatus) || exit 14
            "$0" run --no-wait --progress json --max-sessions 3 \(redirections)
            "$0" nosuch \(redirections); test $? = 2 || exit 13
            """
        let shell = try program.start("/bin/sh", ["-c", script].map { Array($0.utf8) } + [TransferQ.executable.bytes])
        let result = await shell.result()
        #expect(result.status == 0, "\(result.testDescription)")
        let store = FileManager.default.contents(atPath: program.store.appending("queue.sqlite").string)
        #expect(store?.prefix(15) == Data("SQLite format 3".utf8))
        let lock = FileManager.default.contents(atPath: program.store.appending("owner.lock").string) ?? Data()
        #expect(lock.range(of: Data("bytes".utf8)) == nil)
        let health = try await program.run("doctor", "--json", "--timeout", "1").objects().first { $0["check"] as? String == "store" }
        #expect(health?["state"] as? String == "ok")
        #expect(try await program.succeed("list", "--json").lines.count == 3)
        #expect(FileManager.default.contents(atPath: file.string)?.count == 1_000)
    }

    /// The program opens /dev/null in place of each closed stream. Only root may see the open files of a process that is not dumpable
    /// (prctl(2)).
    @Test(.enabled(if: geteuid() == 0)) func replacesClosedStreamsWithNullDevice() async throws {
        let program = try TransferQ()
        let script = """
            "$0" run --forever <&- >&- 2>&- & child=$!
            until "$0" queue status > /dev/null 2>&1 && test -S "$TRANSFERQ_STORE/control.sock"; do :; done
            for number in 0 1 2; do readlink /proc/$child/fd/$number; done
            kill $child; wait $child
            """
        let shell = try program.start("/bin/sh", ["-c", script].map { Array($0.utf8) } + [TransferQ.executable.bytes])
        let result = await shell.result()
        #expect(result.lines == ["/dev/null", "/dev/null", "/dev/null"], "\(result.testDescription)")
    }

    @Test func rejectsClosedStandardInput() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        let shell = try program.start("/bin/sh", ["-c", "\"$0\" add studio - <&-"].map { Array($0.utf8) } + [TransferQ.executable.bytes])
        let result = await shell.result()
        #expect(result.status == 2 && result.diagnostics.contains("standard input is closed"), "\(result.testDescription)")
    }
}
