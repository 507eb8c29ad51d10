import Foundation
import SSHFixture
import SystemPackage
import TUSLoopback
import Testing

/// Runs the samples for several transports and for plain HTTP, and compares their output.
@Suite(.timeLimit(.minutes(5))) struct TransportSampleTests {
    let folder: SampleFolder

    init() throws {
        folder = try SampleFolder()
    }

    @Test func accountRouterFallsBack() async throws {
        let sizes = ["notes.txt": 1_000, "stills.zip": 200_000, "reel.mov": 3 << 20, "dailies.mov": 200_000, "poster.jpg": 5_000]
        for (name, size) in sizes { try folder.file("files/\(name)", size: size) }
        let tus = TUSLoopbackServer(folder: FilePath(folder.url.appending(path: "tus").path))
        let url = try await tus.start().absoluteString
        let ssh = try await SSHServerProcess.start()
        defer { ssh.stop() }
        let arrived = folder.url.appending(path: "sftp")
        try FileManager.default.createDirectory(at: arrived, withIntermediateDirectories: true)
        let address = "sftp://\(ssh.user)@127.0.0.1:\(ssh.port)\(arrived.path)/"
        let receiver = try await Receiver.start(in: folder)
        // The server receives only a part of the reel.
        tus.stopContent(at: 2 << 20)

        let sample = try Sample(
            "AccountRouter", url, address, "http+put://\(receiver.address)", ssh.userKey, try ssh.knownHosts(),
            folder.url.appending(path: "files").path, in: folder)
        let before = await sample.lines(through: "reel.mov: ").filter { !$0.isProgress }
        #expect(before == ["notes.txt arrived over sftp", "stills.zip arrived over sftp"])
        await tus.stop()
        let (lines, status) = await sample.finish()
        // Other sessions can run while the reel waits for its server.
        #expect(
            lines.sorted() == [
                "dailies.mov arrived over sftp", "poster.jpg arrived over http", "reel.mov arrived over sftp",
                "reel.mov continues at \(address)",
            ])
        #expect(status == 0, "\(folder.errors)")
        for name in ["notes.txt", "stills.zip", "reel.mov", "dailies.mov"] {
            #expect(SampleFolder.equal(arrived.appending(path: name), folder.url.appending(path: "files/\(name)")), "\(name)")
        }
        #expect(SampleFolder.equal(receiver.files.appending(path: "poster.jpg"), folder.url.appending(path: "files/poster.jpg")))
    }

    @Test func liveStreamArrives() async throws {
        let receiver = try await Receiver.start(in: folder)
        let (lines, status) = try await Sample("LiveStream", "http+put://\(receiver.address)", in: folder).finish()
        let expected = (1...200).map { "\($0),\(20 + $0 % 7)\n" }.joined()
        #expect(lines == ["\(expected.utf8.count) bytes arrived."] && status == 0, "\(lines) \(folder.errors)")
        #expect(try String(contentsOf: receiver.files.appending(path: "readings.csv"), encoding: .utf8) == expected)
    }

    @Test func formUploadReadsResponse() async throws {
        let receiver = try await Receiver.start(in: folder)
        let file = try folder.file("reel.mp4", size: 100_000)
        let (lines, status) = try await Sample("FormUpload", "http+form://\(receiver.address)upload", file.path, in: folder).finish()
        #expect(
            lines == ["Fields: id, title", "reel: reel.mp4, video/mp4, 100000 bytes", "note: note.txt, text/plain, 18 bytes"],
            "\(folder.errors)")
        #expect(status == 0)
        #expect(SampleFolder.equal(receiver.files.appending(path: "reel.mp4"), file))
    }
}
