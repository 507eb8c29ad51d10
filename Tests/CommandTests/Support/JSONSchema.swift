import Foundation
import Testing
import TransferOutput

/// The schema of the program's output. Supports only the keywords of JSON Schema (draft 2020-12) that the schema uses. Any other keyword is
/// reported as a problem.
struct JSONSchema: Sendable {
    private let root: JSONValue

    /// - Parameter file: A path relative to the package folder.
    init(_ file: String) {
        // This file is in Tests/CommandTests/Support, four levels below the package folder.
        let package = (0..<4).reduce(URL(fileURLWithPath: #filePath)) { url, _ in url.deletingLastPathComponent() }
        // If the schema can't be read, it describes no command, and every check fails.
        root = (try? JSONValue(parsing: String(contentsOf: package.appendingPathComponent(file), encoding: .utf8))) ?? .null
    }

    /// The reference to the schema of each command's output, by command.
    var commands: [String: String] { (root["commands"]?.object ?? [:]).compactMapValues(\.string) }

    /// Returns the violations of the schema in a line of a command's output. Throws an error if the schema does not describe the command.
    func problems(of line: String, from command: String) throws -> [String] {
        let reference = try #require(commands[command], "The schema does not describe the output of \(command).")
        return validate(try JSONValue(parsing: line), against: ["$ref": .string(reference)], at: "").problems
    }

    private struct Finding {
        var problems: [String] = []
        /// The names of the object's members that at least one subschema describes.
        var evaluated: Set<String> = []

        mutating func add(_ other: Finding) {
            problems += other.problems
            evaluated.formUnion(other.evaluated)
        }

        mutating func require(_ condition: Bool, _ problem: @autoclosure () -> String) {
            if !condition { problems.append(problem()) }
        }
    }

    private func validate(_ value: JSONValue, against schema: JSONValue, at location: String) -> Finding {
        var finding = Finding()
        switch schema {
        case .bool(let isAllowed):
            finding.require(isAllowed, "\(location) is not allowed")
        case .object(let keywords):
            for (keyword, argument) in keywords where keyword != "unevaluatedProperties" {
                finding.add(check(value, keyword, argument, beside: schema, at: location))
            }
            if case .bool(false)? = schema["unevaluatedProperties"], let members = value.object {
                let unknown = Set(members.keys).subtracting(finding.evaluated)
                finding.require(unknown.isEmpty, "\(location) has unknown members: \(unknown.sorted())")
            }
        default:
            finding.problems.append("the schema for \(location) is not valid")
        }
        return finding
    }

    private func check(
        _ value: JSONValue, _ keyword: String, _ argument: JSONValue, beside keywords: JSONValue, at location: String
    ) -> Finding {
        var finding = Finding()
        switch keyword {
        case "description": break
        case "$ref": finding.add(validate(value, against: definition(argument), at: location))
        case "type":
            let types = argument.array?.compactMap(\.string) ?? argument.string.map { [$0] } ?? []
            let fits = types.contains(value.type) || value.type == "integer" && types.contains("number")
            finding.require(fits, "\(location) is of the type \(value.type)")
        case "enum":
            let isListed = argument.array?.contains { $0.text == value.text } == true
            finding.require(isListed, "\(location) is not one of the listed values: \(value.text)")
        case "const": finding.require(argument.text == value.text, "\(location) is \(value.text)")
        case "pattern":
            let isMatch = value.string.map { text in
                (try? Regex(argument.string ?? "").firstMatch(in: text)) != nil
            }
            finding.require(isMatch != false, "\(location) does not match the pattern: \(value)")
        case "minimum": finding.require(value.number.map { $0 >= argument.number ?? .infinity } ?? true, "\(location) is too small")
        case "minItems":
            finding.require(value.array.map { Double($0.count) >= argument.number ?? .infinity } ?? true, "\(location) is empty")
        case "items":
            for (index, element) in (value.array ?? []).enumerated() {
                finding.problems += validate(element, against: argument, at: "\(location)[\(index)]").problems
            }
        case "required":
            for name in argument.array?.compactMap(\.string) ?? [] where value.object != nil {
                finding.require(value[name] != nil, "\(location) lacks \(name)")
            }
        case "properties":
            for (name, schema) in argument.object ?? [:] {
                guard let member = value[name] else { continue }
                finding.evaluated.insert(name)
                finding.problems += validate(member, against: schema, at: "\(location).\(name)").problems
            }
        case "additionalProperties":
            for (name, member) in value.object ?? [:] where keywords["properties"]?[name] == nil {
                finding.evaluated.insert(name)
                finding.problems += validate(member, against: argument, at: "\(location).\(name)").problems
            }
        case "anyOf", "oneOf":
            let found = (argument.array ?? []).map { validate(value, against: $0, at: location) }
            let fitting = found.filter(\.problems.isEmpty)
            let isRight = keyword == "anyOf" ? !fitting.isEmpty : fitting.count == 1
            finding.require(isRight, "\(location) fits \(fitting.count) of the alternatives: \(found.flatMap(\.problems))")
            finding.evaluated.formUnion(fitting.flatMap(\.evaluated))
        default: finding.problems.append("the schema for \(location) has \(keyword), which is not supported")
        }
        return finding
    }

    private func definition(_ reference: JSONValue) -> JSONValue {
        let path = (reference.string ?? "").split(separator: "/").dropFirst()
        return path.reduce(root) { $0[String($1)] ?? .null }
    }
}
