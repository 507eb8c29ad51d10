import Foundation
import TransferKit
import TransferOutput

/// An action that the user requests with a form. The fields become the members of a request to the HTTP interface, so the same checks
/// apply.
struct FormAction {
    let fields: [(name: String, value: String)]

    init(_ fields: [(name: String, value: String)]) { self.fields = fields }

    /// The name of the action. For an operation on sessions, this is the name of the `transferq` command, except `rate`
    /// (`set` with a rate limit) and `default` (Enter in the toolbar).
    private var name: String { value("do") ?? "" }

    var ids: [String] { fields.filter { $0.name == "id" }.map(\.value) }

    var needsConfirmation: Bool { name == "remove" && value("confirm") != "yes" && !ids.isEmpty }

    /// The suffix of the names of hidden fields. For example, the hidden field `rateBefore` contains the value that the page showed in `rate`.
    static let renderedSuffix = "Before"

    /// Whether the form contains a field, and the field's value differs from the value that the page showed.
    private func isChanged(_ name: String) -> Bool { value(name) != nil && value(name) != value(name + Self.renderedSuffix) }

    private func value(_ name: String) -> String? { fields.first { $0.name == name }?.value }

    /// The value of a field that the user filled in; nil for an empty or missing field.
    private func text(_ name: String) -> String? { value(name).flatMap { $0.isEmpty ? nil : $0 } }

    private func replacing(_ action: String) -> [(name: String, value: String)] {
        [(name: "do", value: action)] + fields.filter { $0.name != "do" }
    }

    func perform(_ api: APIRouter) async throws -> WebResponse {
        switch name {
        // The user pressed Enter in a field of the toolbar.
        case "default" where text("at") != nil: return try await FormAction(replacing("move")).perform(api)
        case "default" where text("rate") != nil: return try await FormAction(replacing("rate")).perform(api)
        case "default": throw Problem.invalid("Choose an action.")
        case "start", "stop", "drain": return try await change(api, ["queue", name], [:])
        case "limits":
            // Send only edited values, because another client may have changed the other values since the page showed them.
            var members: [String: JSONValue] = [:]
            if isChanged("maxSessions") { members["maxSessions"] = try integer("maxSessions") ?? .null }
            if isChanged("rateLimit") { members["rateLimit"] = try rate("rateLimit") }
            if isChanged("timetable") { members["timetable"] = text("timetable").map(JSONValue.string) ?? JSONValue.null }
            if members.isEmpty { return WebResponse(["changed": .array([]), "refused": .array([])]) }
            return try await change(api, ["queue", "set"], members)
        case "unblock": return try await change(api, ["accounts", value("account") ?? "", "unblock"], [:])
        case "add": return try await change(api, ["sessions"], sessionMembers)
        case "rate": return try await apply("set", ["rateLimit": try rate("rate")], api)
        case "set":
            var members: [String: JSONValue] = [:]
            if isChanged("rate") { members["rateLimit"] = try rate("rate") }
            if isChanged("name"), let name = text("name") { members["name"] = .string(name) }
            if isChanged("tags"), let tags = value("tags") {
                let names = tags.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
                members["tags"] = .array(names.filter { !$0.isEmpty }.map(JSONValue.string))
            }
            if members.isEmpty { return WebResponse(["changed": .array([]), "refused": .array([])]) }
            return try await apply("set", members, api)
        case "move":
            guard let index = try integer("at") else { throw Problem.invalid("Enter the new index.") }
            return try await apply("move", ["at": index], api)
        default: return try await apply(name, [:], api)
        }
    }

    private var sessionMembers: [String: JSONValue] {
        let paths = (value("paths") ?? "").split(whereSeparator: \.isNewline).map { JSONValue.string(String($0)) }
        var members: [String: JSONValue] = ["paths": .array(paths), "hold": .bool(text("hold") != nil)]
        for name in ["account", "direction", "to", "name"] {
            if let text = text(name) { members[name] = .string(text) }
        }
        return members
    }

    private func apply(_ operation: String, _ members: [String: JSONValue], _ api: APIRouter) async throws -> WebResponse {
        guard !ids.isEmpty else { throw Problem.invalid("Select the sessions first.") }
        return try await change(
            api, ["sessions", "actions"],
            members.merging(["operation": .string(operation), "ids": .array(ids.map(JSONValue.string))]) { $1 })
    }

    private func change(_ api: APIRouter, _ path: [String], _ members: [String: JSONValue]) async throws -> WebResponse {
        try await api.change(path, JSONMembers(members))
    }

    private func integer(_ name: String) throws(Problem) -> JSONValue? {
        guard let text = text(name) else { return nil }
        guard let number = Int64(text) else { throw .invalid("\"\(text)\" is not a number.") }
        return .integer(number)
    }

    /// A rate such as 500K; null for no limit.
    private func rate(_ name: String) throws(Problem) -> JSONValue {
        guard let text = text(name) else { return .null }
        guard let rate = ByteCount(text) else { throw .invalid("\"\(text)\" is not a rate. Write bytes per second, such as 500K or 2M.") }
        return rate.limit.map { .integer($0) } ?? .null
    }
}
