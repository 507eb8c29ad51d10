import TransferCore
import TransferKit
import TransferOutput

enum EndpointCheck {
    /// Checks all endpoints of the accounts concurrently. Blocked accounts come first in the result, then endpoints, each in the order of `accounts`.
    ///
    /// - Parameter limit: The time limit for each endpoint.
    static func findings(
        _ accounts: [AccountStatus], _ registered: RegisteredTransports, within limit: Duration
    ) async -> [Finding] {
        let transports = registered.all.map { $0.transport.makeInstance() }
        let pairs = accounts.flatMap { status in status.account.endpoints.map { (status.account.name, $0) } }
        var findings = accounts.compactMap(blockFinding)
        findings += await withTaskGroup(of: (Int, Finding).self) { group in
            for (index, (account, endpoint)) in pairs.enumerated() {
                let transport = transports.first { $0.id == endpoint.transport }
                group.addTask { (index, await finding(account, endpoint, transport, within: limit)) }
            }
            return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
        for transport in transports { await transport.shutdown() }
        return findings
    }

    private static func blockFinding(_ status: AccountStatus) -> Finding? {
        status.blockingError.map {
            Finding(
                check: "account \(status.account.name)", state: .wrong,
                detail: "blocked: \($0) After fixing this: transferq account unblock \(status.account.name.shellWord)",
                fields: [("account", .string(status.account.name)), ("error", JSONValue($0, file: nil))])
        }
    }

    private static func finding(
        _ account: String, _ endpoint: Endpoint, _ transport: (any Transport)?, within limit: Duration
    ) async -> Finding {
        let check = "endpoint \(account)"
        var fields: [(name: String, value: JSONValue)] = [("account", .string(account)), ("address", .string(endpoint.displayAddress))]
        guard let transport else {
            let detail = "\(endpoint.displayAddress): this program does not include the transport \"\(endpoint.transport)\"."
            return Finding(check: check, state: .wrong, detail: detail, fields: fields)
        }
        guard let checking = transport as? any EndpointChecking else {
            return Finding(
                check: check, state: .note,
                detail: "\(endpoint.displayAddress): the transport \"\(endpoint.transport)\" can't check endpoints.", fields: fields)
        }
        do {
            let report = try await report(of: endpoint, by: checking, within: limit)
            fields += [
                ("version", JSONValue(report.version)), ("otherVersions", .array(report.otherVersions.map(JSONValue.string))),
                ("features", .array(report.features.map(JSONValue.string))),
                ("maximumSize", JSONValue(report.maximumSize)),
                ("limits", .object(report.limits.sorted { $0.key < $1.key }.map { ($0.key, .integer($0.value)) })),
                ("hostKey", JSONValue(report.hostKeyFingerprint)), ("latency", .number(report.latency / .seconds(1))),
            ]
            var words = [report.version.map { "version \($0)" } ?? "version unknown"]
            if !report.otherVersions.isEmpty { words.append("also supports \(report.otherVersions.joined(separator: " and "))") }
            if !report.features.isEmpty { words.append(report.features.joined(separator: " ")) }
            if let size = report.maximumSize { words.append("files up to \(Figures.size(size))") }
            words += report.limits.sorted { $0.key < $1.key }.map { "\($0.key) limit \($0.value)" }
            if let key = report.hostKeyFingerprint { words.append("host key \(key)") }
            words.append("responded in \(Int((report.latency / .milliseconds(1)).rounded(.up))) ms")
            return Finding(check: check, state: .ok, detail: "\(endpoint.displayAddress): \(words.joined(separator: ", "))", fields: fields)
        } catch {
            fields.append(("error", JSONValue(error as? TransferError, file: nil)))
            return Finding(check: check, state: .wrong, detail: "\(endpoint.displayAddress): \(error)", fields: fields)
        }
    }

    /// - Throws: A `TransferError` if the check fails or exceeds the time limit.
    private static func report(
        of endpoint: Endpoint, by transport: any EndpointChecking, within limit: Duration
    ) async throws -> EndpointReport {
        try await withThrowingTaskGroup(of: EndpointReport?.self) { group in
            group.addTask { try await transport.check(endpoint, credentials: ReferencedCredentials()) }
            group.addTask {
                try await Task.sleep(for: limit)
                return nil
            }
            defer { group.cancelAll() }
            if let report = try await group.next() ?? nil { return report }
            throw TransferError(
                .unreachable, .timedOut, "The endpoint did not respond within \(limit). To wait longer: --timeout")
        }
    }
}
