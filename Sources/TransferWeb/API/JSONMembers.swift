import Foundation
import TransferKit
import TransferOutput

/// The members of a JSON object from a client.
///
/// The reading methods remove a member and return its value; nil (or false) if the member is missing or null. They throw a ``Problem`` if
/// the value has another type. At the end, ``finish()`` rejects members that were not read. Otherwise, a misspelt member would have no
/// effect.
struct JSONMembers {
    private var members: [String: JSONValue]

    init(_ members: [String: JSONValue]) { self.members = members }

    private init(_ members: [(name: String, value: JSONValue)]) {
        self.members = Dictionary(members.map { ($0.name, $0.value) }) { $1 }
    }

    /// Parses the body of a request. An empty body is an empty object.
    ///
    /// - Throws: A ``Problem`` if the body is not a JSON object.
    init(_ request: WebRequest) throws(Problem) {
        guard !request.body.isEmpty else {
            self.init([:])
            return
        }
        guard request.mediaType == "application/json" else {
            throw Problem(415, "unsupportedMediaType", "The body must have the type application/json.")
        }
        guard let input = try? JSONDecoder().decode(JSONValue.self, from: Data(request.body)) else {
            throw .invalid("The body is not valid JSON.")
        }
        guard case .object(let members) = input else { throw .invalid("The body must be a JSON object.") }
        self.init(members)
    }

    /// Whether a member is present, even with the value null.
    func contains(_ name: String) -> Bool { members[name] != nil }

    private mutating func removeMember(_ name: String) -> JSONValue? {
        switch members.removeValue(forKey: name) {
        case .null, nil: nil
        case let value?: value
        }
    }

    mutating func string(_ name: String) throws(Problem) -> String? {
        switch removeMember(name) {
        case nil: nil
        case .string(let value): value
        default: throw .invalid("\"\(name)\" must be a string.")
        }
    }

    mutating func integer(_ name: String, in range: ClosedRange<Int64> = .min ... .max) throws(Problem) -> Int64? {
        let value: Int64
        switch removeMember(name) {
        case nil: return nil
        case .integer(let number): value = number
        default: throw .invalid("\"\(name)\" must be an integer.")
        }
        guard range.contains(value) else {
            throw .invalid(
                "\"\(name)\" must be \(range.upperBound == .max ? "at least \(range.lowerBound)" : "from \(range.lowerBound) to \(range.upperBound)")."
            )
        }
        return value
    }

    mutating func bool(_ name: String) throws(Problem) -> Bool {
        switch removeMember(name) {
        case nil: false
        case .bool(let value): value
        default: throw .invalid("\"\(name)\" must be true or false.")
        }
    }

    mutating func strings(_ name: String) throws(Problem) -> [String]? {
        guard let value = removeMember(name) else { return nil }
        guard case .array(let values) = value else { throw .invalid("\"\(name)\" must be an array of strings.") }
        var strings: [String] = []
        for value in values {
            guard case .string(let string) = value else { throw .invalid("\"\(name)\" must be an array of strings.") }
            strings.append(string)
        }
        return strings
    }

    mutating func objects(_ name: String) throws(Problem) -> [JSONMembers]? {
        guard let value = removeMember(name) else { return nil }
        guard case .array(let values) = value else { throw .invalid("\"\(name)\" must be an array of objects.") }
        var objects: [JSONMembers] = []
        for value in values {
            guard case .object(let members) = value else { throw .invalid("\"\(name)\" must be an array of objects.") }
            objects.append(JSONMembers(members))
        }
        return objects
    }

    /// Reads a member that is an object of strings.
    mutating func texts(_ name: String) throws(Problem) -> [String: String]? {
        guard let value = removeMember(name) else { return nil }
        guard case .object(let members) = value else { throw .invalid("\"\(name)\" must be an object of strings.") }
        var texts: [String: String] = [:]
        for (key, value) in members {
            guard case .string(let text) = value else { throw .invalid("\"\(name)\" must be an object of strings.") }
            texts[key] = text
        }
        return texts
    }

    /// Reads a member of any type as JSON text.
    mutating func json(_ name: String) -> Data? { removeMember(name).map { Data($0.text.utf8) } }

    mutating func session(_ name: String) throws(Problem) -> SessionID? {
        guard let text = try string(name) else { return nil }
        guard let id = SessionID(text) else { throw .invalid("\"\(name)\" must be the ID of a session.") }
        return id
    }

    /// Reads a timetable in the format of `transferq queue set --timetable`.
    mutating func timetable(_ name: String) throws(Problem) -> BandwidthTimetable? {
        guard let text = try string(name) else { return nil }
        do {
            return try BandwidthTimetable(parsing: text)
        } catch {
            throw .invalid(error.message)
        }
    }

    mutating func date(_ name: String) throws(Problem) -> Date? {
        guard let text = try string(name) else { return nil }
        for style in [Date.ISO8601FormatStyle(includingFractionalSeconds: true), Date.ISO8601FormatStyle()] {
            if let date = try? style.parse(text) { return date }
        }
        throw .invalid("\"\(name)\" must be a time such as 2026-07-01T02:00:00Z.")
    }

    func finish() throws(Problem) {
        guard let name = members.keys.min() else { return }
        throw .invalid("There is no member \"\(name)\" here.")
    }
}
