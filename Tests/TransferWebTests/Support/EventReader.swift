import Foundation
import Testing

final class EventReader {
    private let socket: WebConnection
    /// The received bytes that have not been decoded yet: first the headers, then the chunks of the body (RFC 9112, section 7.1).
    private var received: [UInt8] = []
    private var text = ""

    /// Thrown after the server has ended the stream. Contains the last text of the stream.
    struct StreamEnded: Error {
        let text: String
    }

    struct Event {
        var id: UInt64?
        var name: String?
        var data: [String: Any]
    }

    /// Connects, and reads the headers of the response.
    ///
    /// - Parameter last: The value of `Last-Event-ID`; nil for none.
    init(_ client: WebClient, _ path: String = "/api/v1/events", last: UInt64? = nil) async throws {
        socket = try WebConnection(port: client.port)
        try socket.send(client.head("GET", path, last.map { ["Last-Event-ID": "\($0)"] } ?? [:]))
        let end = Array("\r\n\r\n".utf8)
        while received.firstRange(of: end) == nil { try await receive() }
        let head = received[..<(try #require(received.firstRange(of: end)).upperBound)]
        let reply = try WebReply(Data(head))
        try #require(reply.status == 200 && reply.headers["transfer-encoding"] == "chunked", "\(reply)")
        received.removeFirst(head.count)
    }

    /// Reads up to the next comment, and fails if an event arrives before the comment.
    func comment() async throws {
        while case let block = try await block(), block != ":" { try #require(!block.contains("data:"), "\(block)") }
    }

    /// Reads the next event. Skips comments and the `retry` field.
    func next() async throws -> Event {
        while true {
            var event = Event(data: [:])
            for line in try await block().split(separator: "\n") {
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
    }

    /// Reads up to the next empty line, and returns the lines before it.
    private func block() async throws -> String {
        while true {
            if let end = text.range(of: "\n\n") {
                defer { text = String(text[end.upperBound...]) }
                return String(text[..<end.lowerBound])
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

    /// Reads the next chunk of the body.
    private func readMore() async throws {
        let lineBreak = Array("\r\n".utf8)
        while true {
            if let line = received.firstRange(of: lineBreak) {
                let size = try #require(Int(String(decoding: received[..<line.lowerBound], as: UTF8.self), radix: 16))
                if received.count >= line.upperBound + size + lineBreak.count {
                    text += String(decoding: received[line.upperBound...].prefix(size), as: UTF8.self)
                    received.removeFirst(line.upperBound + size + lineBreak.count)
                    return
                }
            }
            try await receive()
        }
    }

    private func receive() async throws {
        let bytes = await socket.readSome()
        guard !bytes.isEmpty else { throw StreamEnded(text: String(text.suffix(300))) }
        received += bytes
    }

    func disconnect() { socket.disconnect() }
}
