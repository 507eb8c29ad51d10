import Dispatch
import Foundation
import TransferControl
import TransferKit

// The code in the doc comments on streams; see ``DocCommentTests``.

// swift-format-ignore
private func remote(_ lines: AsyncStream<String>) async throws {
    // COMMENT RemoteStreamWriter.swift
    let queue = RemoteTransferQueue(folder: "/var/lib/studio/queue")
    let stream = try await queue.enqueueStream(as: "log.txt", .upload(items: [], to: "studio"))
    for try await line in lines { try await stream.write(Data(line.utf8)) }
    try await stream.finish()
    // END
}

// swift-format-ignore
private func output(_ writer: StreamWriter, _ encoder: Encoder, _ records: [String]) throws {
    // COMMENT StreamWriter+OutputStream.swift
    try writer.withOutputStream { stream in
        try encoder.encode(records, to: stream)
    }
    // END
}

private struct Encoder {
    func encode(_ records: [String], to stream: OutputStream) throws {}
}

// swift-format-ignore
private func timed(_ writer: StreamWriter, _ sensor: Sensor, _ queue: DispatchQueue) {
    let timer = DispatchSource.makeTimerSource(queue: queue)
    var pending = Data()
    // COMMENT StreamWriter.swift
    timer.setEventHandler {
        pending.append(sensor.read())
        do {
            pending.removeFirst(try writer.tryWrite(pending))
        } catch {
            timer.cancel()  // The queue no longer reads the stream.
        }
    }
    // END
}

private struct Sensor: Sendable {
    func read() -> Data { Data() }
}
