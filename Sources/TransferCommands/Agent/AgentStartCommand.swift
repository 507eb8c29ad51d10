import ArgumentParser
import SystemPackage
import TransferControl
import TransferCore

struct AgentStartCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "start", abstract: "Starts the agent, and returns when it is ready.",
        discussion: """
            Credentials that are named by variables are those of this shell. An agent that runs already is left as it is.

            Example: transferq agent start --jobs 2
            """)

    @OptionGroup var common: CommonOptions

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("How many sessions may run at once, for as long as the agent runs.", valueName: "number"))
    var jobs: Int?

    func validate() throws {
        if let jobs, jobs < 1 { throw ValidationError("--jobs takes a number from 1 on, and not \(jobs).") }
    }

    func run() async throws {
        let folder = try common.folder()
        if let owner = try await common.answeringOwner()?.owner, owner.role == .agent {
            if jobs != nil {
                await CommandContext.current.terminal.write(
                    "The agent runs already, so that --jobs has no effect; see \"transferq queue set --max-sessions\".")
            }
            return await AgentDescription(owner, folder: folder).write(asJSON: common.json)
        }
        var arguments = ["agent", "run", "--store"].map { Array($0.utf8) } + [folder.bytes]
        if let jobs { arguments += ["--jobs", "\(jobs)"].map { Array($0.utf8) } }
        if common.verbosity > 0 { arguments.append(Array("-v".utf8)) }
        let (words, log) = (arguments, folder.appending(RotatingLog.name))
        do {
            _ = try await BlockingWork.run { () throws(CommandFailure) in try AgentLaunch.launch(words, log: log) }
        } catch {
            // Another command may have started one meanwhile.
            guard let owner = try await common.answeringOwner()?.owner, owner.role == .agent else { throw error }
        }
        guard let owner = try await common.answeringOwner()?.owner else {
            throw CommandFailure(.storage, "The agent was ready, and has ended since; \(log) may tell why.")
        }
        await AgentDescription(owner, folder: folder).write(asJSON: common.json)
    }
}

struct AgentStopCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop", abstract: "Ends the agent cleanly, and returns when it has let the queue go.",
        discussion: """
            What runs is interrupted, and goes on from there when the queue runs again.

            Example: transferq agent stop
            """)

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let none = CommandFailure(.unfit, "No agent runs the queue in \(try common.folder()).")
        // Where nobody answers, nothing is opened or made.
        guard try await common.answeringOwner()?.owner.role == .agent else { throw none }
        // If it ended by itself or by another command since, there is nothing left to do once it has let the queue go.
        _ = try await common.withOwner { queue in
            guard try await queue.owner().role == .agent else { throw none }
            try await queue.endOwner()
        }
        if common.json { await CommandContext.current.output.write(["running": .bool(false)] as JSONValue) }
    }
}

struct AgentStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Tells whether the agent runs; ends with 4 if it does not.",
        discussion: "Example: transferq agent status --json")

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let folder = try common.folder()
        let owner = try await common.answeringOwner()?.owner
        guard let owner, owner.role == .agent else {
            if common.json { await CommandContext.current.output.write(["running": .bool(false)] as JSONValue) }
            let other = owner.map { " Process \($0.processID) owns it." } ?? ""
            throw CommandFailure(.unfit, "No agent runs the queue in \(folder).\(other)")
        }
        await AgentDescription(owner, folder: folder).write(asJSON: common.json)
    }
}
