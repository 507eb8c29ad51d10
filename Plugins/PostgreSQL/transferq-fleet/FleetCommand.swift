import ArgumentParser
import Foundation
import TransferFleet
import TransferKit

struct FleetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fleet", abstract: "Creates, inspects and changes a fleet.",
        discussion: """
            "init" creates or migrates the tables. "status" shows the number of sessions, and "members" the hosts. "evict" removes a host \
            that is gone for good; sessions that may run elsewhere continue on other members.

            Example: transferq --fleet postgresql://owner@db.example.com/transferq fleet init
            Example: transferq fleet members
            Example: transferq fleet evict host-2
            """)

    enum Action: String, ExpressibleByArgument, CaseIterable {
        case create = "init"
        case status, members, evict
    }

    /// The JSON object that `init` prints.
    private struct SetupOutput: Encodable {
        /// `created`, `migrated` or `current`.
        var result: String
        /// The version of the tables before the migration; omitted if the tables were not migrated.
        var previousVersion: Int64?
        /// The current version of the tables.
        var version: Int64
    }

    /// The JSON object that `evict` prints.
    private struct RemovalOutput: Encodable {
        var result = "removed"
        var member: String
    }

    @Argument(help: "What to do.") var action: Action
    @Argument(help: "The member to remove.") var name: String?
    @Flag(help: "Print JSON, one object per line.") var json = false

    func validate() throws {
        if (action == .evict) != (name != nil) { throw ValidationError("evict needs the name of a member. Other actions take no name.") }
    }

    /// Performs the action on the fleet at a URL, and prints the result.
    ///
    /// - Returns: The exit status.
    func run(at url: String) async throws -> Int32 {
        let fleet = try Fleet(url, place: .anywhere)
        let result = try await output(fleet, url)
        await fleet.close()
        return FleetProgramCommand.show(result)
    }

    private func output(_ fleet: Fleet, _ url: String) async throws -> String {
        switch action {
        case .create: return try output(of: try await Fleet.setUp(at: url))
        case .evict:
            let member = name ?? ""
            try await fleet.evict(member)
            if json { return try Self.json(RemovalOutput(member: member)) }
            return "Removed the member. Sessions that may run elsewhere continue on other members within 15 s."
        case .status:
            let (status, members) = (try await fleet.status(), try await fleet.members())
            if json { return try Self.json(status) }
            return """
                Mode:     \(status.mode.rawValue)
                Members:  \(members.count { $0.isLive }) live of \(members.count)
                Sessions: \(status.running) running, \(status.waiting) waiting, \(status.paused) paused, \(status.held) held, \
                \(status.completed) completed, \(status.failed) failed, \(status.cancelled) cancelled
                """
        case .members:
            let members = try await fleet.members()
            if json { return try members.map { try Self.json($0) }.joined(separator: "\n") }
            return members.map { member in
                let refused = member.refusedAccounts.isEmpty ? "" : ", can't use \(member.refusedAccounts.joined(separator: ", "))"
                let labels = member.labels.isEmpty ? "" : " [\(member.labels.joined(separator: ", "))]"
                return
                    "\(member.name)\(labels): \(member.isLive ? "live" : "gone"), \(member.sessions) of \(member.slots) slots in use\(refused)"
            }.joined(separator: "\n")
        }
    }

    private func output(of setup: FleetSetup) throws -> String {
        let (result, text): (String, String) =
            switch setup.previousVersion {
            case nil: ("created", "Created the fleet.")
            case .some(let previous) where previous == setup.version: ("current", "The fleet has the current version.")
            case .some(let previous):
                ("migrated", "Migrated the fleet's tables from version \(previous) to version \(setup.version).")
            }
        guard json else { return text }
        let previous = setup.previousVersion == setup.version ? nil : setup.previousVersion
        return try Self.json(SetupOutput(result: result, previousVersion: previous, version: setup.version))
    }

    private static func json(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }
}
