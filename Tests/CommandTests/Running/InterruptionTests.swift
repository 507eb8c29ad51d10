import Foundation
import ScriptedHTTP
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Signals to a run, for example from Ctrl-C or from a terminal that closes.
@Suite(.serialized) struct InterruptionTests {
    /// No process reads the output, so a clean exit would block when the program writes its events. The next run completes the sessions.
    @Test func exitsImmediatelyOnSecondSignal() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            let names = (0..<20).map { "\($0)" }
            for name in names { try program.folder.file(name, size: 10) }
            _ = try await program.run(["add", "studio"] + names + ["--each"])
            let fifo = program.folder.path.appending("fifo")
            #expect(unsafe fifo.withPlatformString { unsafe mkfifo($0, 0o600) } == 0)
            // Opens both ends of the FIFO, so that neither this process nor the program waits for the other to open it (fifo(7)). Then
            // fills the FIFO.
            let reader = try FileDescriptor.open(fifo, .readWrite, options: [.closeOnExec, .nonBlocking])
            defer { try? reader.close() }
            while (try? reader.writeAll([0x0A])) != nil {}
            let terminal = try PseudoTerminal(columns: 80)
            let script = Array("exec \"$0\" run --json > fifo".utf8)
            let run = try program.start(
                "/bin/sh", [Array("-c".utf8), script, TransferQ.executable.bytes], diagnostics: terminal.terminal)
            while studio.server.statistics.uploads.count(where: \.isComplete) < names.count { await Task.yield() }
            run.send(SIGINT)
            while !terminal.drawn.contains("interrupt again") { await Task.yield() }
            run.send(SIGINT)
            let result = await run.result()
            #expect(result.status == 130 && !result.wasKilled)
            _ = try await terminal.finish()
            // No progress is lost.
            #expect(try await program.run("run", "--progress", "none").status == 0)
            let sessions = try await program.succeed("list", "--json").objects()
            #expect(sessions.allSatisfy { $0["state"] as? String == "completed" })
            for name in names { #expect(!studio.server.storedFiles(named: name).isEmpty, "\(name)") }
        }
    }

    @Test func stopsWhileWaitingForOwner() async throws {
        let program = try TransferQ()
        let queue = try await TransferQueue(storage: .folder(program.store), transports: [])
        let terminal = try PseudoTerminal(columns: 80)
        let watch = try OwnerLockWatch(store: program.store)
        let run = try program.start(["run"], diagnostics: terminal.terminal)
        try await watch.waitForOpeningAsync()
        run.send(SIGTERM)
        #expect(await run.result().status == 130)
        await queue.shutdown()
        _ = try await terminal.finish()
    }

    /// Without its storage folder, the queue can't store any change, but the run still stops.
    @Test(.timeLimit(.minutes(10))) func stopsAfterStorageFolderWasDeleted() async throws {
        let closed = try ReservedPort()
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "tus+http://127.0.0.1:\(closed.port)/files/")
        try program.folder.file("a", size: 1)
        let id = try await program.succeed("upload", "studio", "a").lines[0]
        let run = try program.start(["run", "--progress", "none"])
        while try await !program.succeed("why", id).output.contains("attempt failed") {}
        try FileManager.default.removeItem(atPath: program.store.string)
        run.send(SIGTERM)
        let result = await run.result()
        #expect(result.status == 130 && !result.wasKilled)
    }

    /// The terminal closes during a transfer.
    @Test func stopsCleanlyOnHangUp() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.file("slow", size: 1 << 20)
            _ = try await program.succeed("add", "studio", "slow", "--rate", "64K", "--chunk", "64K")
            let run = try program.start(["run", "--progress", "plain"])
            while studio.server.statistics.uploads.allSatisfy({ $0.offset == 0 }) { await Task.yield() }
            run.send(SIGHUP)
            let result = await run.result()
            #expect(result.status == 130 && !result.wasKilled)
            #expect(result.diagnostics.contains("Interrupted"))
            let session = try #require(try await program.succeed("list", "--json").objects().first)
            #expect(session["state"] as? String == "waiting")
        }
    }

    @Test func showsExpiryOfUnfinishedUpload() async throws {
        try await LoopbackStudio.with(LoopbackOptions(lifetime: .seconds(3600))) { studio in
            let program = studio.program
            try program.folder.file("slow", size: 1 << 20)
            _ = try await program.succeed("add", "studio", "slow", "--rate", "64K", "--chunk", "64K")
            let run = try program.start(["run", "--progress", "none"])
            while studio.server.statistics.uploads.allSatisfy({ $0.offset == 0 }) { await Task.yield() }
            run.send(SIGTERM)
            #expect(await run.result().status == 130)
            let id = try #require(try await program.succeed("list", "--json").objects().first?["id"] as? String)
            let items = try #require(try await studio.session(id)["items"] as? [[String: Any]])
            let date = try #require(items.first?["partialExpiresAt"] as? String)
            let text = try await program.succeed("show", id).output
            let path = program.folder.path.appending("slow").string
            #expect(text.contains("\(path): the server keeps the unfinished upload until \(date.prefix(19))Z\n"), "\(text)")
        }
    }

    /// nohup(1) makes a process ignore SIGHUP, so that the process outlives its terminal.
    @Test func ignoresHangUpUnderNohup() async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try program.folder.file("first", size: 10)
            try program.folder.file("second", size: 10)
            _ = try await program.succeed("add", "studio", "first")
            let script = Array("trap '' HUP; exec \"$0\" run --forever".utf8)
            let run = try program.start("/bin/sh", [Array("-c".utf8), script, TransferQ.executable.bytes])
            while !studio.server.statistics.uploads.contains(where: \.isComplete) { await Task.yield() }
            run.send(SIGHUP)
            _ = try await program.succeed("add", "studio", "second")
            while studio.server.statistics.uploads.count(where: \.isComplete) < 2 { await Task.yield() }
            run.send(SIGTERM)
            let result = await run.result()
            #expect(result.status == 130 && !result.wasKilled)
        }
    }
}
