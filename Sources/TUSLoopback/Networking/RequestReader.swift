/// Reads requests from a connection through one buffer. Belongs to the connection's thread.
final class RequestReader {
    let connection: Connection
    private let order: ArrivalOrder
    private var buffer = [UInt8](repeating: 0, count: 256 * 1024)
    private var unread = 0..<0
    private var isReadingHead = false

    /// More than any client of tus sends; a request with more is no request.
    private static let maximumHeadSize = 64 * 1024

    init(_ connection: Connection, _ order: ArrivalOrder) {
        self.connection = connection
        self.order = order
    }

    /// Reads the next request's head.
    ///
    /// - Returns: nil if the connection ended before its first byte.
    func nextHead() throws(ConnectionFailure) -> RequestHead? {
        isReadingHead = true
        defer { isReadingHead = false }
        if unread.isEmpty {
            guard try fill() else { return nil }
        }
        var lines: [String] = []
        var size = 0
        while true {
            let line = try nextLine()
            if line.isEmpty {
                // Empty lines before a request are skipped (RFC 9112, section 2.2).
                if lines.isEmpty { continue }
                return try RequestHead(lines)
            }
            size += line.utf8.count
            guard size <= Self.maximumHeadSize else { throw .malformed("The headers are longer than \(Self.maximumHeadSize) bytes.") }
            lines.append(line)
        }
    }

    /// Reads up to the next line break, and over it.
    func nextLine() throws(ConnectionFailure) -> String {
        var line: [UInt8] = []
        while true {
            if unread.isEmpty {
                guard try fill() else { throw .ended }
            }
            if let end = buffer[unread].firstIndex(of: UInt8(ascii: "\n")) {
                line += buffer[unread.lowerBound..<end]
                unread = end + 1..<unread.upperBound
                if line.last == UInt8(ascii: "\r") { line.removeLast() }
                return String(decoding: line, as: UTF8.self)
            }
            line += buffer[unread]
            unread = unread.upperBound..<unread.upperBound
            guard line.count <= Self.maximumHeadSize else { throw .malformed("A line is longer than \(Self.maximumHeadSize) bytes.") }
        }
    }

    /// Hands over what came, at least one and at most `limit` bytes.
    func next(upTo limit: Int) throws(ConnectionFailure) -> ArraySlice<UInt8> {
        if unread.isEmpty {
            guard try fill() else { throw .ended }
        }
        let taken = unread.prefix(limit)
        unread = taken.upperBound..<unread.upperBound
        return buffer[taken]
    }

    /// Waits for bytes; false at the end of the connection.
    private func fill() throws(ConnectionFailure) -> Bool {
        if isReadingHead { order.set(.waiting, for: connection.number) }
        let count = try connection.receive(into: &buffer, isInterruptible: !isReadingHead)
        if isReadingHead { order.set(.reading, for: connection.number) }
        unread = 0..<count
        return count > 0
    }
}
