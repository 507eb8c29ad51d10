import TransferOutput

/// The result of one diagnostic check.
struct Finding: Sendable {
    enum State: String, Sendable {
        case ok
        /// Information that is not a problem.
        case note
        /// A problem, so the command does not exit with 0.
        case wrong
    }

    /// The name of the check, such as `endpoint studio`.
    let check: String
    let state: State
    let detail: String
    /// Additional members of the JSON output.
    var fields: [(name: String, value: JSONValue)] = []

    var json: JSONValue {
        .object([("check", .string(check)), ("state", .string(state.rawValue)), ("detail", .string(detail))] + fields)
    }
}

extension OutputWriter {
    func write(_ findings: [Finding], asJSON isJSON: Bool) async {
        if isJSON {
            for finding in findings { await write(finding.json) }
            return
        }
        var table = Table([("CHECK", .left), ("STATE", .left), ("DETAIL", .left)])
        for finding in findings { table.append([finding.check, finding.state.rawValue, finding.detail]) }
        await write(table.text)
    }
}
