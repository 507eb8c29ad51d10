import ArgumentParser
import SystemPackage
import TransferControl
import TransferCore
import TransferKit
import TransferOutput

struct AgentStartCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "start", abstract: "Starts the agent and returns when it is ready.",
        discussion: """
            The agent reads credentials in environment variables from this shell. If the agent is already running, the command changes nothing.

            Example: transferq agent start --max-sessions 2
            """)

    @OptionGroup var common: CommonOptions

    @OptionGroup var limits: RunLimitOptions

    @OptionGroup var web: AgentWebOptions

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The size of agent.log before rotation (default: 1M).",
            valueName: "size"))
    var logSize: ByteCount?

    func validate() throws {
        if let logSize, logSize.bytes < 4_096 { throw ValidationError("--log-size must be at least 4096 bytes, not \(logSize.bytes).") }
    }

    func run() async throws {
        let folder = try common.folder()
        if let (queue, owner) = try await common.respondingOwner(), owner.role == .agent {
            if !limits.arguments.isEmpty {
                let arguments = limits.arguments.joined(separator: " ")
                await common.note(
                    "The agent is already running, so its limits are unchanged. To change the queue's limits: transferq queue set \(arguments)"
                )
            }
            if web.web {
                await common.note("The agent is already running, so --web has no effect. To start the page alone: transferq web")
            }
            if logSize != nil {
                await common.note(
                    "The agent is already running, so the size of its log is unchanged. To restart the agent: transferq agent stop, then agent start"
                )
            }
            return await AgentDescription(owner, try await queue.status().mode, folder: folder).write(asJSON: common.json)
        }
        var arguments = ["agent", "run", "--store"].map { Array($0.utf8) } + [folder.bytes]
        arguments += (limits.arguments + web.arguments + (logSize.map { ["--log-size", "\($0.bytes)"] } ?? [])).map { Array($0.utf8) }
        if common.verbosity > 0 { arguments.append(Array("-v".utf8)) }
        let (words, log) = (arguments, folder.appending(RotatingLog.name))
        do {
            _ = try await BlockingIO.run { () throws(CommandFailure) in try AgentLaunch.launch(words, log: log) }
        } catch {
            // Another command may have started an agent at the same time.
            guard let owner = try await common.respondingOwner()?.owner, owner.role == .agent else { throw error }
        }
        guard let (queue, owner) = try await common.respondingOwner() else {
            throw CommandFailure(.storage, "The agent started and then exited. See \(log).")
        }
        await AgentDescription(owner, try await queue.status().mode, folder: folder).write(asJSON: common.json)
    }
}

struct AgentStopCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop", abstract: "Stops the agent, and waits until it has exited.",
        discussion: """
            Running sessions are interrupted and resume when the queue runs again.

            Example: transferq agent stop
            """)

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let noAgent = CommandFailure(.rejected, "No agent runs the queue in \(try common.folder()).")
        // If no process owns the queue, the command must not open or create it.
        guard try await common.respondingOwner()?.owner.role.isAgent == true else { throw noAgent }
        // `withOwner` returns nil if the agent has exited since the check and no other process owns the queue.
        _ = try await common.withOwner { queue in
            guard try await queue.owner().role.isAgent else { throw noAgent }
            try await queue.stopAgent()
        }
        if common.json { await CommandContext.current.output.write(["running": .bool(false)] as JSONValue) }
    }
}

struct AgentStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Reports whether the agent is running.",
        discussion: """
            Exits with 4 if the agent is not running.

            Example: transferq agent status --json
            """)

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let folder = try common.folder()
        let found = try await common.respondingOwner()
        guard let (queue, owner) = found, owner.role.isAgent else {
            if common.json { await CommandContext.current.output.write(["running": .bool(false)] as JSONValue) }
            let other = (found?.owner).map { " Process \($0.processID) owns it." } ?? " To start one: transferq agent start"
            throw CommandFailure(.rejected, "No agent runs the queue in \(folder).\(other)")
        }
        await AgentDescription(owner, try await queue.status().mode, folder: folder).write(asJSON: common.json)
    }
}
