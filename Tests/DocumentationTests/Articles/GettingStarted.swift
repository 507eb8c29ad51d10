import Foundation
import SystemPackage
import TransferCore
import TransferKit
import TransportTUS

/// The code of the article "Getting started", in the same order. ``ArticleTests`` verifies that both copies match.
// swift-format-ignore
private func gettingStarted(_ camera: any Camera) async throws {
    // ARTICLE
    let queue = try await TransferQueue(
        storage: .folder("/var/lib/uploader/queue"), transports: [TUSTransport()])
    // END

    // ARTICLE
    try await queue.save(Account("studio", endpoints: [
        .tus("https://upload.example.com/files/",
             credentials: .bearer(.environment("STUDIO_TOKEN"))),
    ]))
    // END

    // ARTICLE
    let reel = try await queue.enqueue(
        .upload(["reel.mov", "stills/"], to: "studio", name: "the reel"))
    // END

    // ARTICLE
    let note = Data("Colours are final.".utf8)
    let extras = try await queue.enqueue(.upload(items: [
        TransferItem("/srv/grades/final.cube", as: RemotePath("grades/reel.cube")),
        .data(note, as: RemotePath("note.txt")),
    ], to: "studio"))
    // END

    // ARTICLE
    let rushes = try await queue.enqueue(.download(items: [
        .remote(try RemotePath("rushes/day-7.mov")),
        .remote(try RemotePath("notes.txt"), as: "day-7/notes.txt"),
    ], from: "archive", to: "/srv/incoming",
       options: SessionOptions(overwrite: .different)))
    // END

    // ARTICLE
    let (item, writer) = TransferItem.stream(as: try RemotePath("live/camera-1.ts"))
    let live = try await queue.enqueue(.upload(items: [item], to: "studio"))
    while let packet = try await camera.next() {
        try await writer.write(packet)
    }
    writer.finish()
    // END

    let ((_, meter), sensor) = (TransferItem.stream(as: "meter"), Sensor())
    var pending = Data()
    try record(meter)
    func record(_ writer: StreamWriter) throws {
        // ARTICLE
        pending.append(sensor.read())
        pending.removeFirst(try writer.tryWrite(pending))
        // END
    }

    // ARTICLE
    let unfinished = try queue.unfinishedStreams.map {
        ($0, try queue.continueStream($0))
    }
    try await queue.start()
    for (stream, writer) in unfinished {
        let rest = try await recording(stream.destination, from: stream.offset)
        try await writer.write(rest)
        writer.finish()
    }
    // END

    // ARTICLE
    try await queue.start()
    do {
        let end = try await reel.value
        print("\(end.name): \(end.statistics.filesDone) files arrived.")
    } catch let error as TransferError {
        print("The reel failed: \(error)")
    }
    // END

    // ARTICLE
    try await queue.retry(reel.id)
    // END

    // ARTICLE
    // Now. If needed, interrupts another session, which resumes later.
    try await queue.run(extras.id)
    // Changes the order only.
    try await queue.move(reel.id, to: .end)
    // A whole group.
    try await queue.apply(.hold, to: .account("studio"))
    try await queue.apply(.release, to: .account("studio"))
    // Bytes per second, for all sessions together.
    try await queue.setRateLimit(2_000_000)
    // END

    // ARTICLE
    switch try await queue.pause(extras.id) {
    case .paused: try await queue.resume(extras.id)
    default: try await queue.release(extras.id)
    }
    // END

    // ARTICLE
    for session in try await queue.sessions() where session.state == .waiting {
        let reason = session.why?.description ?? "It is about to start."
        print("\(session.index) \(session.name): \(reason)")
    }
    // END

    // ARTICLE
    await queue.shutdown()
    // END

    // ARTICLE
    for session in try await queue.sessions() where session.state != .completed {
        let handle = try await queue.session(session.id)
        for await figures in handle.progress {
            print("\(session.name): \(figures.bytesSent) bytes")
        }
    }
    // END
    _ = (rushes, live)
}

/// Returns the recorded bytes of a stream, from an offset.
private func recording(_ name: RemotePath, from offset: Int64) async throws -> Data {
    Data()
}

/// The source of the stream in the article.
private protocol Camera: Sendable {
    func next() async throws -> Data?
}

private struct Sensor {
    func read() -> Data { Data() }
}
