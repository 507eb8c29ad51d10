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

/// Tests of `transferq watch --exec`. The programs print the events that they get, so the output of `watch` contains these events.
@Suite(.timeLimit(.minutes(5))) struct HookProgramTests {
    private func hook(_ store: FilePath, _ words: String...) throws -> (program: StartedProgram, lines: LineReader) {
        try hook(store, words)
    }

    private func withFolder(_ body: (FilePath) async throws -> Void) async throws {
        let folder = FilePath(NSTemporaryDirectory()).appending("hook-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder.string) }
        try await body(folder)
    }

    private func script(_ text: String, in folder: FilePath) throws -> String {
        let path = folder.appending("script-\(UUID().uuidString)")
        try Data("#!/bin/sh\n\(text)\n".utf8).write(to: URL(fileURLWithPath: path.string))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path.string)
        return path.string
    }

    @Test func `a program gets the selected events as JSON, and no value reaches a shell`() async throws {
        try await WebFixture.with { fixture in
            let marker = fixture.folder.appending("attacked")
            let name = "$(touch \(marker)) `touch \(marker)`; touch \(marker) '\" | touch \(marker)"
            let ids = try await fixture.add(2) { _ in name }
            let (program, lines) = try hook(
                fixture.store, "--follow", "--since", "0", "--event", "added,changed", "--exec",
                try script("echo \"$# $1\"; cat", in: fixture.folder), "--", "$(touch \(marker))")
            defer { program.kill() }
            #expect(try await lines.next() == "1 $(touch \(marker))")
            let added = try await lines.object()
            #expect(added["event"] as? String == "added" && added["ids"] as? [String] == ids.map(\.description))
            try await fixture.queue.update(ids[0], SessionUpdate(name: name))
            try await fixture.queue.release(ids[1])
            _ = try await lines.next()
            let changed = try await lines.object()
            #expect(changed["event"] as? String == "changed" && changed["id"] as? String == ids[1].description)
            #expect(!FileManager.default.fileExists(atPath: marker.string))
        }
    }

    @Test func `a hook that is killed gets the event in progress again, and loses no event`() async throws {
        try await WebFixture.with { fixture in
            let id = try await fixture.add(1)[0]
            let start = await fixture.queue.status().revision
            let gate = fixture.folder.appending("gate")
            // The program prints the event, and then waits until the gate exists.
            let waiting = try script("cat; while ! [ -e '\(gate)' ]; do sleep 0.05; done", in: fixture.folder)
            let words = ["--follow", "--since", "\(start)", "--event", "changed", "--hook", "test", "--exec", waiting]
            try await fixture.queue.release(id)
            try await fixture.queue.hold(id)
            for _ in 0..<2 {
                let (program, lines) = try hook(fixture.store, words)
                #expect(try await lines.revision() == Int(start) + 1)
                program.kill()
            }
            try Data().write(to: URL(fileURLWithPath: gate.string))
            let (program, lines) = try hook(fixture.store, words)
            #expect(try await lines.revision() == Int(start) + 1)
            #expect(try await lines.revision() == Int(start) + 2)
            // The second event may be in progress, but the first event is not repeated.
            program.kill()
            try await fixture.queue.release(id)
            let (last, lastLines) = try hook(fixture.store, words)
            defer { last.kill() }
            var revision = try await lastLines.revision()
            if revision == Int(start) + 2 { revision = try await lastLines.revision() }
            #expect(revision == Int(start) + 3)
        }
    }

    @Test func `an event is repeated until the program handles it`() async throws {
        try await WebFixture.with { fixture in
            try await fixture.add(1)
            let state = fixture.folder.appending("state")
            // The program's first run kills itself, and the second run fails.
            let failing = try script(
                "cat; echo >> '\(state)'; case $(wc -l < '\(state)') in 1) kill -9 $$;; 2) exit 3;; esac", in: fixture.folder)
            let errors = fixture.folder.appending("errors")
            let program = try Commands.start(
                ["watch", "--follow", "--since", "0", "--event", "added,didChangeQueue", "--exec", failing], store: fixture.store,
                errors: errors)
            defer { program.kill() }
            let lines = LineReader(program)
            var events: [String] = []
            for _ in 0..<4 { events.append(try #require(try await lines.object()["event"] as? String)) }
            #expect(events == ["added", "added", "added", "didChangeQueue"])
            let text = try String(contentsOfFile: errors.string, encoding: .utf8)
            #expect(text.contains("signal 9 ended it") && text.contains("its exit status was 3") && text.contains("repeated in 2 s"))
        }
    }

    @Test func `a hook survives killed owners, and gets the events of commands that ran without an owner`() async throws {
        try await withFolder { folder in
            let store = folder.appending("store")
            let owner = try Commands.start(["agent", "run"], store: store)
            let limits = { (number: Int) in try await Commands.run(["queue", "set", "--max-sessions", "\(number)"], store: store) }
            try await limits(2)
            let (program, lines) = try hook(store, "--follow", "--since", "0", "--event", "limitsChanged", "--exec", "cat")
            defer { program.kill() }
            var revisions = [try await lines.revision()]
            owner.kill()
            try await limits(3)
            revisions.append(try await lines.revision())
            let next = try Commands.start(["agent", "run"], store: store)
            try await limits(4)
            revisions.append(try await lines.revision())
            next.kill()
            try await limits(5)
            revisions.append(try await lines.revision())
            #expect(revisions == Set(revisions).sorted())
        }
    }

    @Test func `a hook without --follow handles the recorded events once`() async throws {
        try await withFolder { folder in
            let store = folder.appending("store")
            for number in 1...3 { try await Commands.run(["queue", "set", "--max-sessions", "\(number)"], store: store) }
            let words = ["--since", "0", "--exec", "cat"]
            let (first, lines) = try hook(store, words)
            var events: [String] = []
            while let line = try await lines.next() { events.append(line) }
            #expect(events.count == 3 && events.allSatisfy { $0.contains("limitsChanged") })
            #expect(await Commands.end(of: first) == 0)
            let (_, none) = try hook(store, words)
            #expect(try await none.next() == nil)
            // Another hook has its own revision, and begins with new events.
            let (_, other) = try hook(store, "--hook", "other", "--exec", "cat")
            #expect(try await other.next() == nil)
        }
    }

    @Test func `a second process for a running hook is rejected`() async throws {
        try await WebFixture.with { fixture in
            try await fixture.add(1)
            let words = ["--follow", "--since", "0", "--exec", "cat"]
            let (program, lines) = try hook(fixture.store, words)
            defer { program.kill() }
            _ = try await lines.next()
            let (second, _) = try hook(fixture.store, words)
            #expect(await Commands.end(of: second) == 4)
        }
    }

    @Test(arguments: [
        ["--exec", "cat", "--webhook", "http://127.0.0.1/"], ["--webhook", "http://127.0.0.1/"], ["--secret-file", "x"],
        ["--webhook", "ftp://x/", "--secret-file", "x"], ["--event", "complete"], ["--event", ""], ["--hook", "a"], ["--", "a"],
        ["--exec", "cat", "--hook", "../a"],
    ])
    func `invalid options are rejected`(_ words: [String]) async throws {
        try await withFolder { folder in
            let (program, _) = try hook(folder.appending("store"), words)
            #expect(await Commands.end(of: program) == 2)
        }
    }

    private func hook(_ store: FilePath, _ words: [String]) throws -> (program: StartedProgram, lines: LineReader) {
        let program = try Commands.start(["watch", "--quiet"] + words, store: store)
        return (program, LineReader(program))
    }
}
