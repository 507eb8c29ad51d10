import ArgumentParser
import Foundation
import SystemPackage
import TransferControl
import TransferCore
import TransferKit
import TransferOutput

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Checks versions, storage, permissions and endpoints.",
        discussion: """
            Connects to each endpoint of each account. Reads credentials from this shell's environment. Exits with 1 if it finds a problem, \
            and with 3 if the queue can't be used.

            Example: transferq doctor --json
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var checkOptions: CheckOptions

    func run() async throws {
        ProcessMemoryProtection.enable()
        let folder = try FolderLocation.folder(option: common.store?.path)
        var findings = versions()
        if let finding = await BlockingIO.run(.files, { FolderCheck.finding(folder) }) { findings.append(finding) }
        let accounts: [AccountStatus]
        do {
            let seen = try await common.withQueue { queue in
                (
                    floor: try await queue.status().diskFloor, database: await databaseFindings(queue, folder),
                    owner: try await ownerFinding(queue),
                    accounts: try await queue.accounts()
                )
            }
            findings += await Self.diskFindings(folder, floor: seen.floor) + seen.database + [seen.owner].compactMap(\.self)
            accounts = seen.accounts
        } catch let error as QueueError {
            // Uses the default disk floor, because a queue that can't be reached can't report its disk floor.
            findings += await Self.diskFindings(folder, floor: QueueConfiguration().diskFloor)
            findings.append(Finding(check: "store", state: .wrong, detail: error.message))
            await CommandContext.current.output.write(findings, asJSON: common.json)
            throw ExitStatus(error.code)
        }
        // `withQueue` has released the queue, so other commands can use it while this command waits for servers.
        findings += await EndpointCheck.findings(accounts, CommandContext.current.transports, within: checkOptions.limit)
        await CommandContext.current.output.write(findings, asJSON: common.json)
        if findings.contains(where: { $0.state == .wrong }) { throw ExitStatus.incomplete }
    }

    private static func diskFindings(_ folder: FilePath, floor: Int64) async -> [Finding] {
        await BlockingIO.run(.files) { FolderCheck.diskFinding(folder, floor: floor).map { [$0] } ?? [] }
    }

    private func versions() -> [Finding] {
        let transports = CommandContext.current.transports.all
        var findings = [
            Finding(check: "transferq", state: .ok, detail: RootCommand.version, fields: [("version", .string(RootCommand.version))])
        ]
        if transports.isEmpty {
            findings.append(Finding(check: "transports", state: .wrong, detail: "This program was built without transports."))
        }
        for transport in transports {
            let detail = (["\(transport.schemes.keys.sorted().map { "\($0)://" }.joined(separator: ", "))"] + transport.libraries)
                .joined(separator: "; ")
            findings.append(
                Finding(
                    check: "transport \(transport.id)", state: .ok, detail: detail,
                    fields: [("libraries", .array(transport.libraries.map(JSONValue.string)))]))
        }
        return findings
    }

    /// Findings about the database in the storage folder: its state, and the sessions in quarantine. Empty for a fleet.
    private func databaseFindings(_ queue: any ControllableQueue, _ folder: FilePath) async -> [Finding] {
        do {
            let health = try await queue.storeHealth()
            let fields: [(name: String, value: JSONValue)] = [
                ("folder", .string(folder.string)), ("sqlite", .string(health.sqliteVersion)), ("schema", JSONValue(health.schemaVersion)),
                ("problems", .array(health.problems.map(JSONValue.string))),
            ]
            let versions = "SQLite \(health.sqliteVersion), schema \(health.schemaVersion)"
            guard health.problems.isEmpty else {
                let section = Troubleshooting.reference(for: QueueError.Code.storageDamaged).map { " \($0)" } ?? ""
                let problems = health.problems.map { $0.hasSuffix(".") ? $0 : $0 + "." }.joined(separator: " ")
                let detail = "The database in \(folder) has a problem (\(versions)): \(problems)\(section)"
                return [Finding(check: "store", state: .wrong, detail: detail, fields: fields)] + Self.quarantine(health)
            }
            return [Finding(check: "store", state: .ok, detail: "The database in \(folder) is intact (\(versions)).", fields: fields)]
                + Self.quarantine(health)
        } catch let error as QueueError where error.code == .invalidRequest {
            // A fleet keeps its state in a PostgreSQL database, which this command does not check.
            return []
        } catch {
            return [Finding(check: "store", state: .wrong, detail: (error as? QueueError)?.message ?? "\(error)")]
        }
    }

    private static func quarantine(_ health: StoreHealth) -> [Finding] {
        guard let notice = QuarantineCommand.notice(health.quarantined) else { return [] }
        return [
            Finding(check: "quarantine", state: .wrong, detail: notice + ".", fields: [("sessions", JSONValue(health.quarantined))])
        ]
    }

    /// The finding about the process that owns the queue; nil for a fleet, whose queue several processes run.
    private func ownerFinding(_ queue: any ControllableQueue) async throws -> Finding? {
        guard let remote = queue as? RemoteTransferQueue else {
            guard queue is TransferQueue else { return nil }
            return Finding(
                check: "owner", state: .ok, detail: "No process owns the queue. To run it: transferq run, or transferq agent start",
                fields: [("process", .null)])
        }
        let owner = try await remote.owner()
        let kind = owner.role.isAgent ? "The agent" : owner.role == .run ? "transferq run" : "An app"
        let mode = try await remote.status().mode
        let notice = mode.notice
        return Finding(
            check: "owner", state: notice == nil ? .ok : .note,
            detail: "\(kind) (process \(owner.processID)) has owned the queue since \(Figures.date(owner.since))."
                + (notice.map { " \($0)" } ?? ""),
            fields: [
                ("process", .integer(Int64(owner.processID))), ("role", .string(owner.role.rawValue)), ("since", JSONValue(owner.since)),
                ("mode", .string(mode.rawValue)),
            ])
    }
}
