import Foundation
import SystemPackage
import TransferCore
package import TransferKit

/// The encodable form of a list of sessions.
///
/// Encoding and decoding a `SessionStatus` as JSON takes 50 µs, so a list of 100,000 sessions would take five seconds. Instead, this type
/// encodes each combination of shared properties once, and the other properties of each session as bytes. A number takes eight
/// little-endian bytes. The length of a text precedes the text. An optional value begins with one byte: 1 if the value follows, 0 for nil.
package struct SessionRows: Codable, Sendable {
    /// Sessions with only the properties that many sessions share.
    private var templates: [SessionStatus] = []
    private var count = 0
    private var rows = Data()

    package init(_ sessions: some Collection<SessionStatus>) {
        var writer = RowWriter()
        var numbers: [SessionStatus: Int] = [:]
        for session in sessions {
            var template = session
            var previous: SessionID?
            if case .order(let id) = session.why {
                previous = id
                template.why = nil
            }
            (template.id, template.index, template.name, template.context) = (Self.noID, 0, "", nil)
            (template.attempts, template.failedItem, template.statistics) = (0, nil, SessionStatistics())
            (template.createdAt, template.startedAt, template.endedAt, template.expectedEnd) = (.distantPast, nil, nil, nil)
            (template.notBefore, template.dependency) = (nil, nil)
            let number = numbers[template] ?? numbers.count
            if number == numbers.count {
                numbers[template] = number
                templates.append(template)
            }
            writer.append(Int64(number))
            writer.append(session, after: previous)
        }
        count = sessions.count
        rows = writer.bytes
    }

    private static let noID = SessionID(uuid: UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))

    /// The decoded sessions.
    ///
    /// - Throws: ``QueueError`` with the code `invalidMessage` if the bytes are not a valid list.
    package var sessions: [SessionStatus] {
        get throws(QueueError) {
            var reader = RowReader(bytes: rows)
            var sessions: [SessionStatus] = []
            guard (0...rows.count).contains(count) else { throw RowReader.invalid }
            sessions.reserveCapacity(count)
            for _ in 0..<count {
                guard let number = Int(exactly: try reader.integer()), templates.indices.contains(number) else { throw RowReader.invalid }
                var session = templates[number]
                try reader.read(&session)
                sessions.append(session)
            }
            return sessions
        }
    }
}

/// Encodes the properties that the template of a session lacks.
private struct RowWriter {
    private(set) var bytes = Data()

    mutating func append(_ number: Int64) {
        unsafe withUnsafeBytes(of: number.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    }

    private mutating func append(_ number: Double) { append(Int64(bitPattern: number.bitPattern)) }

    private mutating func append(_ content: some Collection<UInt8>) {
        append(Int64(content.count))
        bytes.append(contentsOf: content)
    }

    private mutating func append(_ id: SessionID) {
        unsafe withUnsafeBytes(of: id.uuid.uuid) { unsafe bytes.append(contentsOf: $0) }
    }

    private mutating func append<Value>(_ value: Value?, _ append: (inout RowWriter, Value) -> Void) {
        bytes.append(value == nil ? 0 : 1)
        if let value { append(&self, value) }
    }

    mutating func append(_ session: SessionStatus, after previous: SessionID?) {
        append(session.id)
        append(previous) { $0.append($1) }
        append(Int64(session.index))
        append(session.name.utf8)
        append(session.context) { $0.append($1) }
        append(Int64(session.attempts))
        append(session.failedItem) { $0.append($1.bytes) }
        for date in [session.createdAt, session.startedAt, session.endedAt, session.expectedEnd, session.notBefore] {
            append(date) { $0.append($1.timeIntervalSinceReferenceDate) }
        }
        append(session.dependency) { writer, dependency in
            writer.append(dependency.session)
            writer.append(Int64(dependency.acceptsAnyEnd ? 1 : 0))
        }
        let figures = session.statistics
        for number in [figures.files, figures.filesDone, figures.filesFailed, figures.filesUnsized] { append(Int64(number)) }
        for number in [figures.bytesKnown, figures.bytesDone, figures.bytesSent] { append(number) }
        append(figures.rate) { $0.append($1) }
        append(figures.averageRate) { $0.append($1) }
        append(figures.secondsElapsed)
        append(figures.secondsRemaining) { $0.append($1) }
    }
}

/// Decodes the bytes of a ``RowWriter``.
private struct RowReader {
    static let invalid = QueueError(.invalidMessage, "The other process sent an invalid message.")

    private let bytes: Data
    private var position: Int

    init(bytes: Data) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    private mutating func next(_ count: Int) throws(QueueError) -> Data {
        guard count >= 0, count <= bytes.endIndex - position else { throw Self.invalid }
        defer { position += count }
        return bytes[position..<position + count]
    }

    mutating func integer() throws(QueueError) -> Int64 {
        Int64(bitPattern: try next(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }

    private mutating func number() throws(QueueError) -> Int {
        guard let number = Int(exactly: try integer()) else { throw Self.invalid }
        return number
    }

    private mutating func double() throws(QueueError) -> Double { Double(bitPattern: UInt64(bitPattern: try integer())) }

    private mutating func content() throws(QueueError) -> Data { Data(try next(try number())) }

    private mutating func id() throws(QueueError) -> SessionID {
        let bytes = Array(try next(16))
        return unsafe bytes.withUnsafeBytes { unsafe SessionID(uuid: UUID(uuid: $0.loadUnaligned(as: uuid_t.self))) }
    }

    private mutating func optional<Value>(_ read: (inout RowReader) throws(QueueError) -> Value) throws(QueueError) -> Value? {
        switch try next(1).first {
        case 0: nil
        case 1: try read(&self)
        default: throw Self.invalid
        }
    }

    private mutating func date() throws(QueueError) -> Date? {
        try optional { reader throws(QueueError) in Date(timeIntervalSinceReferenceDate: try reader.double()) }
    }

    /// Decodes the properties that the template of a session lacks.
    mutating func read(_ session: inout SessionStatus) throws(QueueError) {
        session.id = try id()
        if let previous = try optional({ reader throws(QueueError) in try reader.id() }) { session.why = .order(after: previous) }
        session.index = try number()
        session.name = String(decoding: try content(), as: UTF8.self)
        session.context = try optional { reader throws(QueueError) in try reader.content() }
        session.attempts = try number()
        session.failedItem = try optional { reader throws(QueueError) in FilePath(bytes: try reader.content()) }
        guard let createdAt = try date() else { throw Self.invalid }
        session.createdAt = createdAt
        (session.startedAt, session.endedAt, session.expectedEnd, session.notBefore) = (try date(), try date(), try date(), try date())
        session.dependency = try optional { reader throws(QueueError) in
            SessionDependency(try reader.id(), acceptsAnyEnd: try reader.integer() != 0)
        }
        var figures = SessionStatistics()
        (figures.files, figures.filesDone, figures.filesFailed, figures.filesUnsized) =
            (try number(), try number(), try number(), try number())
        (figures.bytesKnown, figures.bytesDone, figures.bytesSent) = (try integer(), try integer(), try integer())
        (figures.rate, figures.averageRate) = (try optionalDouble(), try optionalDouble())
        figures.secondsElapsed = try double()
        figures.secondsRemaining = try optionalDouble()
        session.statistics = figures
    }

    private mutating func optionalDouble() throws(QueueError) -> Double? {
        try optional { reader throws(QueueError) in try reader.double() }
    }
}
