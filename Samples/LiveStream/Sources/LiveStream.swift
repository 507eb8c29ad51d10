import Foundation
import TransferKit
import TransportHTTP

/// Sends the readings of a sensor while it produces them, as one file of unknown length.
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

        let sensor = Sensor(readings: 200, to: writer)
        sensor.start()
        // Waits until the server has the whole stream. If the sensor fails, this throws.
        let end = try await session.value
        print("\(end.statistics.bytesDone) bytes arrived.")
        await queue.shutdown()
    }
}

/// A sensor with a timer. The timer can't wait while the connection is slow, so it writes what fits, and keeps the rest for the next time.
final class Sensor {
    private let readings: Int
    private let writer: StreamWriter
    private let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "sensor"))
    // Only the timer uses these variables.
    private var next = 1
    private var pending = Data()

    init(readings: Int, to writer: StreamWriter) {
        (self.readings, self.writer) = (readings, writer)
    }

    func start() {
        timer.schedule(deadline: .now(), repeating: .milliseconds(5))
        timer.setEventHandler { [self] in fire() }
        timer.activate()
    }

    private func fire() {
        do {
            if next <= readings {
                pending.append(Data("\(next),\(20 + next % 7)\n".utf8))
                next += 1
            }
            // Returns 0 if the buffer is full.
            pending.removeFirst(try writer.tryWrite(pending))
            guard next > readings, pending.isEmpty else { return }
            // Without this call, the upload would fail as incomplete. To end it as incomplete, call `writer.fail(_:)`.
            writer.finish()
        } catch {
            // The queue no longer reads the stream, for example because the session was cancelled.
            print("The upload ended early: \(error)")
        }
        timer.cancel()
    }
}
