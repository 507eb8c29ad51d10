import Foundation
import ProcessFixture
import SSHFixture
import SystemPackage
import TUSLoopback
import Testing

/// Runs the samples for several transports and for plain HTTP, and checks their output.
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
        // The server receives only part of the reel.
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
        let sample = try Sample("LiveStream", "http+put://\(receiver.address)", in: folder)
        // The receiver gets the first readings before the stream ends.
        #expect(try await receiver.nextLine() == "receiving /readings.csv")
        sample.endInput()
        let (lines, status) = await sample.finish()
        let received = try String(contentsOf: receiver.files.appending(path: "readings.csv"), encoding: .utf8)
        let count = received.count { $0 == "\n" }
        #expect(count > 0 && received == (1...max(count, 1)).map { "\($0),\(20 + $0 % 7)\n" }.joined())
        #expect(
            lines == ["Press Return to stop the sensor.", "\(received.utf8.count) bytes arrived."] && status == 0,
            "\(lines) \(folder.errors)")
    }

    /// The servers are tuspyserver, nginx and a Flask application.
    @Test func samplesWorkWithIndependentServers() async throws {
        let names = ["a.mov", "b.mov", "c.mov"]
        let clips = try names.map { try folder.file("clips/\($0)", size: 300_000) }
        let tusFolder = folder.url.appending(path: "tuspyserver")
        let tus = try await PythonProcess.runBlocking { try PythonProcess("tuspyserver_server.py", [tusFolder.path, "0"]) }
        let batch = try await Sample(
            "BatchUploader", "http://127.0.0.1:\(tus.port)/files/", folder.url.appending(path: "clips").path, in: folder
        ).finish()
        #expect(batch.lines == ["3 sessions, 0 completed"] + names.map { "\($0) completed" } && batch.status == 0, "\(folder.errors)")
        let uploads = try FileManager.default.contentsOfDirectory(at: tusFolder.appending(path: "uploads"), includingPropertiesForKeys: nil)
        for clip in clips { #expect(uploads.count { SampleFolder.equal($0, clip) } == 1, "\(clip.lastPathComponent)") }

        let nginxFolder = folder.url.appending(path: "nginx")
        let nginx = try await PythonProcess.runBlocking { try PythonProcess("nginx_put.py", [nginxFolder.path, "1000000"]) }
        let stream = try Sample("LiveStream", "http+put://127.0.0.1:\(nginx.port)/", in: folder)
        _ = await stream.lines(through: "Press Return")
        stream.endInput()
        let (lines, status) = await stream.finish()
        let received = try Data(contentsOf: nginxFolder.appending(path: "files/readings.csv"))
        #expect(lines == ["\(received.count) bytes arrived."] && status == 0, "\(folder.errors)")

        let formFolder = folder.url.appending(path: "flask")
        let flask = try await PythonProcess.runBlocking { try PythonProcess("form_server.py", [formFolder.path, "1000000"]) }
        let form = try await Sample("FormUpload", "http+form://127.0.0.1:\(flask.port)/upload?path={name}", clips[0].path, in: folder)
            .finish()
        #expect(
            form.lines == ["Fields: id, title", "reel: a.mov, video/quicktime, 300000 bytes", "note: note.txt, text/plain, 18 bytes"],
            "\(folder.errors)")
        #expect(form.status == 0)
        withExtendedLifetime((tus, nginx, flask)) {}
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
