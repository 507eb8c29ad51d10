import ArgumentParser
import Foundation
import TransferFleet
import TransferKit

/// The commands for a fleet itself.
struct FleetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fleet", abstract: "Creates, inspects and changes a fleet.",
        discussion: """
            "init" creates or migrates the tables. "status" shows the number of sessions, and "members" the hosts. "evict" removes a host \
            that does not return; its sessions continue on other members.

            Example: transferq --fleet postgresql://owner@db.example.com/transferq fleet init
            Example: transferq fleet members
            Example: transferq fleet evict host-2
            """)

    enum Action: String, ExpressibleByArgument, CaseIterable {
        case create = "init"
        case status, members, evict
    }

    @Argument(help: "What to do.") var action: Action
    @Argument(help: "The member to remove.") var name: String?
    @Flag(help: "Print JSON, one object per line.") var json = false

    func validate() throws {
        if (action == .evict) != (name != nil) { throw ValidationError("evict needs the name of a member. Other actions take no name.") }
    }

    /// - Returns: The exit status.
    func run(at url: String) async throws -> Int32 {
        let fleet = try Fleet(url, place: .anywhere)
        let result = try await output(fleet, url)
        await fleet.close()
        return FleetProgramCommand.show(result)
    }

    private func output(_ fleet: Fleet, _ url: String) async throws -> String {
        switch action {
        case .create: return try await Fleet.create(at: url) ? "Created the fleet." : "The fleet has the current version."
        case .evict:
            try await fleet.evict(name ?? "")
            return "Removed the member. Its sessions continue on other members within 15 s."
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

    private static func json(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }
}
