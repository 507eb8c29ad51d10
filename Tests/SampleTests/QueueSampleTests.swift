import Foundation
import SystemPackage
import TUSLoopback
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Runs the samples that control a queue, and checks their output. The tus server runs in the test process.
@Suite(.timeLimit(.minutes(5))) struct QueueSampleTests {
    let folder: SampleFolder
    let tus: TUSLoopbackServer

    init() throws {
        folder = try SampleFolder()
        tus = TUSLoopbackServer(folder: FilePath(folder.url.appending(path: "server").path))
    }

    /// Whether the server has exactly one file with this name, with the content of a local file.
    private func hasArrived(_ name: String, from file: String) -> Bool {
        let stored = tus.storedFiles(named: name)
        return stored.count == 1 && SampleFolder.equal(URL(filePath: stored[0].string), folder.url.appending(path: file))
    }

    @Test func batchUploaderResumesAfterKill() async throws {
        let names = (1...20).map { "clip-\($0 < 10 ? "0" : "")\($0).mov" }
        let sizes = names.map { $0 == "clip-08.mov" ? 3 << 20 : 64 << 10 }
        for (name, size) in zip(names, sizes) { try folder.file("clips/\(name)", size: size) }
        let url = try await tus.start().absoluteString
        // The server cuts the connection in the middle of the eighth file. Afterwards, it accepts no bytes beyond this offset.
        tus.inject(.cut(afterBodyBytes: 2 << 20))
        tus.stopContent(at: 2 << 20)

        let first = try Sample("BatchUploader", url, folder.url.appending(path: "clips").path, in: folder)
        let lines = await first.lines(through: "clip-08.mov will be retried: ")
        #expect(lines.filter { !$0.isProgress }.dropLast() == ["20 sessions, 0 completed"] + names[..<7].map { "\($0) completed" })
        #expect(lines.contains("clip-07.mov: 100 %"))
        first.send(SIGKILL)
        #expect(await first.finish().status == SIGKILL)

        tus.stopContent(at: nil)
        let second = try await Sample("BatchUploader", in: folder).finish()
        #expect(second.lines == ["20 sessions, 7 completed"] + names[7...].map { "\($0) completed" })
        #expect(second.status == 0)
        for name in names { #expect(hasArrived(name, from: "clips/\(name)"), "\(name)") }
        #expect(tus.statistics.bytesStored == Int64(sizes.reduce(0, +)), "no stored byte is sent again")

        // Adding the same folder again adds no session.
        let third = try await Sample("BatchUploader", url, folder.url.appending(path: "clips").path, in: folder).finish()
        #expect(third.lines == ["20 sessions, 20 completed"] && third.status == 0)
        await tus.stop()
    }

    @Test func reprioritizerChangesOrder() async throws {
        for name in ["a", "b", "c", "d"] { try folder.file(name, size: 10_000) }
        let url = try await tus.start().absoluteString
        let paths = ["a", "b", "c", "d"].map { folder.url.appending(path: $0).path }
        let sample = try Sample("Reprioritizer", url, paths[0], paths[1], paths[2], paths[3], in: folder)
        _ = await sample.lines(through: "a waiting, b waiting, c waiting, d waiting")
        // Each command, with the last line that the sample prints after the command. Other lines can precede this line,
        // because the sample prints each change of the list.
        let steps = [
            ("move 3 0", "d waiting, a waiting, b waiting, c waiting"),
            ("pause 1", "d waiting, a held, b waiting, c waiting"),
            ("undo", "d waiting, a waiting, b waiting, c waiting"),
            ("cancel 3", "d waiting, a waiting, b waiting, c cancelled"),
            ("undo", "d waiting, a waiting, b waiting, c waiting"),
            ("cancel 1", "d waiting, a cancelled, b waiting, c waiting"),
            ("skip 1", "This is not a command: skip 1"),
            ("now 9", "There is no such row."),
            ("undo\nundo", "a waiting, b waiting, c waiting, d waiting"),
            ("undo\nmove 3 0", "d waiting, a waiting, b waiting, c waiting"),
            ("now 2\nstart", "d waiting, a waiting, b running, c waiting"),
            ("pause 2", "d waiting, a waiting, b paused, c waiting"),
            ("undo", "d waiting, a waiting, b running, c waiting"),
        ]
        // No upload can complete before the pause.
        tus.stopContent(at: 5_000)
        for (command, line) in steps {
            try sample.input(command)
            #expect(await sample.lines(through: line).last?.hasPrefix(line) == true, "\(command)")
        }
        tus.stopContent(at: nil)
        let completed = "d completed, a completed, b completed, c completed"
        #expect(await sample.lines(through: completed).last == completed)
        try sample.input("pause 0")
        #expect(await sample.lines(through: "The session").last?.hasPrefix("The session") == true)
        sample.endInput()
        #expect(await sample.finish().status == 0)
        #expect(tus.statistics.uploads.map(\.filename) == ["b", "d", "a", "c"], "the order of the uploads")
        await tus.stop()
    }

    @Test func agentClientFollowsUploadOfEarlierLaunch() async throws {
        try folder.file("reel.mov", size: 3 << 20)
        let url = try await tus.start().absoluteString
        let store = folder.url.appending(path: "store").path
        let transferq = { (arguments: String...) async throws in
            try await Sample("transferq", "--store", store, in: folder, rest: arguments).finish()
        }
        #expect(
            try await Sample("AgentClient", store, in: folder).finish().lines == [
                "No agent is running. To start one: transferq --store \(store) agent start"
            ])
        try #require(try await transferq("account", "add", "studio", url).status == 0)
        try #require(try await transferq("agent", "start").status == 0)
        do {
            // The upload can't complete before the second launch of the client.
            tus.stopContent(at: 2 << 20)
            let file = folder.url.appending(path: "reel.mov").path
            let firstLaunch = try await Sample("AgentClient", store, "studio", file, in: folder).finish()
            #expect(firstLaunch.lines == ["The agent has stored the session. Its upload no longer needs this program."])
            #expect(firstLaunch.status == 0)

            let secondLaunch = try Sample("AgentClient", store, in: folder)
            let lines = await secondLaunch.lines(through: "reel.mov: ")
            #expect(lines == ["reel.mov: running"] || lines == ["reel.mov: waiting"], "\(lines)")
            tus.stopContent(at: nil)
            let end = await secondLaunch.finish()
            #expect(end.lines == ["reel.mov: completed"] && end.status == 0)
            #expect(hasArrived("reel.mov", from: "reel.mov"))
            #expect(try await Sample("AgentClient", store, in: folder).finish().lines == ["reel.mov: completed"])
        } catch {
            _ = try? await transferq("agent", "stop")
            throw error
        }
        #expect(try await transferq("agent", "stop").status == 0)
        await tus.stop()
    }

    @Test func ingestResumesAfterGracefulShutdown() async throws {
        let url = try await tus.start().absoluteString
        try folder.file("report.pdf", size: 2 << 20)
        tus.stopContent(at: 1 << 20)
        let (first, web) = try await startIngest(url)

        let put = try await curl("--upload-file", folder.url.appending(path: "report.pdf").path, "\(web)/files/report.pdf")
        #expect(put.last == "202" && put.count == 2, "\(put)")
        #expect(try await curl("--upload-file", folder.url.appending(path: "report.pdf").path, "\(web)/files/%2E%2E").last == "400")
        #expect(try await curl("\(web)/health") == ["ok", "200"])
        let metrics = try await curl("\(web)/metrics")
        #expect(metrics.contains("ingest_sessions{state=\"failed\"} 0") && metrics.contains { $0.hasPrefix("ingest_bytes_remaining ") })

        // Waits until the server has half of the file.
        while tus.statistics.bytesStored < 1 << 20 { _ = try await curl("\(web)/health") }
        first.send(SIGTERM)
        let stopped = await first.finish()
        #expect(stopped.lines == ["Stopped"] && stopped.status == 0)

        tus.stopContent(at: nil)
        let second = try await startIngest(url)
        #expect(await second.sample.lines(through: "report.pdf ").last == "report.pdf arrived")
        #expect(hasArrived("report.pdf", from: "report.pdf"))
        #expect(tus.statistics.bytesStored == 2 << 20, "no stored byte is sent again")

        // The server now rejects requests without credentials.
        for _ in 0..<4 { tus.inject(.answer(status: 401)) }
        _ = try await curl("--upload-file", folder.url.appending(path: "report.pdf").path, "\(second.web)/files/second.pdf")
        #expect(await second.sample.lines(through: "store is blocked: ").last?.hasPrefix("store is blocked: ") == true)
        #expect(try await curl("\(second.web)/health") == ["unhealthy", "503"])
        second.sample.send(SIGTERM)
        #expect(await second.sample.finish().status == 0)
        await tus.stop()
    }

    /// Starts the sample Ingest, and returns the address of its web service.
    private func startIngest(_ server: String) async throws -> (sample: Sample, web: String) {
        let sample = try Sample("Ingest", server, "0", in: folder)
        let port = try #require(await sample.lines(through: "Listening on port ").last?.split(separator: " ").last)
        return (sample, "http://127.0.0.1:\(port)")
    }

    /// Runs curl, and returns the lines of the response, followed by the status code as the last line.
    private func curl(_ arguments: String...) async throws -> [String] {
        let status = ["--silent", "--write-out", "\n%{http_code}\n"]
        return try await Sample("/usr/bin/curl", in: folder, rest: status + arguments).finish().lines.filter { !$0.isEmpty }
    }
}
