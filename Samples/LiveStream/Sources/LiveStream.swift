import Foundation
import TransferKit
import TransportHTTP

/// Sends a sensor's readings while the sensor produces them, as one file of unknown length. Press Return to end the file.
///
///     LiveStream ADDRESS    for example http+put://127.0.0.1:8080/
@main
struct LiveStream {
    static func main() async throws {
        guard CommandLine.arguments.count == 2 else { return print("Usage: LiveStream ADDRESS") }
        let queue = try await TransferQueue(storage: .inMemory, transports: [HTTPTransport()])
        try await queue.save(Account("collector", endpoints: [.http(CommandLine.arguments[1])]))

        let (item, writer) = TransferItem.stream(as: "readings.csv")
        let session = try await queue.enqueue(.upload(items: [item], to: "collector"))
        try await queue.start()

        print("Press Return to stop the sensor.")
        Sensor(writer).start()
        // Waits until the server has the whole stream. Throws an error if the session fails.
        let end = try await session.value
        print("\(end.statistics.bytesDone) bytes arrived.")
        await queue.shutdown()
    }
}

/// A sensor with a timer. The timer can't wait while the connection is slow, so it writes the bytes that fit, and keeps the rest for its
/// next event.
final class Sensor {
    private let writer: StreamWriter
    private let timer: any DispatchSourceTimer
    private let input: any DispatchSourceRead
    // Only code on the dispatch queue of the timer and the input uses these variables.
    private var next = 1
    private var isStopped = false
    private var pending = Data()

    init(_ writer: StreamWriter) {
        let queue = DispatchQueue(label: "sensor")
        self.writer = writer
        timer = DispatchSource.makeTimerSource(queue: queue)
        input = DispatchSource.makeReadSource(fileDescriptor: 0, queue: queue)
    }

    func start() {
        timer.schedule(deadline: .now(), repeating: .milliseconds(5))
        timer.setEventHandler { [self] in fire() }
        timer.activate()
        input.setEventHandler { [self] in
            isStopped = true
            input.cancel()
        }
        input.activate()
    }

    private func fire() {
        do {
            // While the connection is too slow, the sensor skips readings.
            if !isStopped, pending.count < 64 << 10 {
                pending.append(Data("\(next),\(20 + next % 7)\n".utf8))
                next += 1
            }
            // Returns 0 if the buffer is full.
            pending.removeFirst(try writer.tryWrite(pending))
            guard isStopped, pending.isEmpty else { return }
            // Without this call, the upload would fail as incomplete. If the sensor fails, call `writer.fail(_:)` instead.
            writer.finish()
        } catch {
            // The queue no longer reads the stream, for example because the session was cancelled.
            print("The upload ended early: \(error)")
        }
        timer.cancel()
    }
}
