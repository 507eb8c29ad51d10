import Foundation
import Testing

/// Reads server-sent events from a connection.
final class EventReader {
    private let socket: WebSocket
    private var text = ""

    /// An event of the stream.
    struct Event {
        var id: UInt64?
        var name: String?
        var data: [String: Any]
    }

    /// Connects, and reads the headers of the response.
    ///
    /// - Parameter last: The value of `Last-Event-ID`; nil for none.
    init(_ client: WebClient, _ path: String = "/api/v1/events", last: UInt64? = nil) async throws {
        socket = try WebSocket(port: client.port)
        // With HTTP/1.0, the body is not divided into chunks.
        try socket.send(client.head("GET", path, last.map { ["Last-Event-ID": "\($0)"] } ?? [:], version: "1.0"))
        while !text.contains("\r\n\r\n") { try await readMore() }
        let reply = try WebReply(Data(text.utf8))
        try #require(reply.status == 200, "\(text)")
        text = reply.body
    }

    /// Reads the next event. Comments and the `retry` field are skipped.
    func next() async throws -> Event {
        while true {
            while let end = text.range(of: "\n\n") {
                let block = text[..<end.lowerBound]
                text = String(text[end.upperBound...])
                var event = Event(data: [:])
                for line in block.split(separator: "\n") {
                    let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
                    switch parts.first {
                    case "id": event.id = UInt64(parts[1])
                    case "event": event.name = parts[1]
                    case "data": event.data = try JSONSerialization.jsonObject(with: Data(parts[1].utf8)) as? [String: Any] ?? [:]
                    default: break
                    }
                }
                if !event.data.isEmpty { return event }
            }
            try await readMore()
        }
    }

    /// Reads up to the first event of this kind, and returns all events that were read.
    func events(upTo name: String) async throws -> [Event] {
        var events: [Event] = []
        while true {
            let event = try await next()
            events.append(event)
            if event.data["event"] as? String == name { return events }
        }
    }

    private func readMore() async throws {
        let bytes = await socket.readSome()
        try #require(!bytes.isEmpty, "the stream ended after: \(text.suffix(300))")
        text += String(decoding: bytes, as: UTF8.self)
    }

    func disconnect() { socket.disconnect() }
}
