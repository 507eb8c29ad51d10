import ArgumentParser
import Foundation
import Logging
import SystemPackage
import TransferCommands
import TransferFleet
import TransferKit

struct MemberOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The storage folder of the member.", valueName: "dir")) var store: String?
    @Option(help: "The maximum number of concurrent sessions.") var slots = 1
    @Option(help: "The member's name (default: this host's name).") var name: String?
    @Option(parsing: .singleValue, help: "A label that --place can name; repeatable.") var label: [String] = []
    @Flag(name: .shortAndLong, help: "Log more.") var verbose = false

    func validate() throws {
        if slots < 1 { throw ValidationError("--slots must be at least 1.") }
        if name == "" { throw ValidationError("--name must not be empty.") }
        if store == "" { throw ValidationError("--store needs the path of a folder.") }
    }

    var folder: FilePath { store.map { FilePath($0).absolute } ?? Self.defaultFolder }

    static var defaultFolder: FilePath {
        (Storage.variable("TRANSFERQ_STORE") ?? Storage.xdgStateFolder(of: "transferq-member")).absolute
    }

    /// The command-line arguments with these values, for the background process.
    var arguments: [String] {
        ["--store", folder.string, "--slots", "\(slots)"] + (name.map { ["--name", $0] } ?? []) + label.flatMap { ["--label", $0] }
            + (verbose ? ["--verbose"] : [])
    }
}

struct MemberCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Transfers the fleet's sessions until SIGTERM, SIGINT or \"agent stop\".",
        discussion: """
            Example: transferq --fleet postgresql://db.example.com/transferq agent run --slots 2 --label media
            """)

    @OptionGroup var options: MemberOptions

    @Option(help: ArgumentHelp("The file descriptor on which the agent reports readiness.", visibility: .private))
    var readyDescriptor: Int32?

    /// Runs the member until a signal or `agent stop`.
    ///
    /// - Returns: The exit status.
    func run(at url: String) async throws -> Int32 {
        guard let readyDescriptor else {
            try await work(at: url, starter: nil)
            return 0
        }
        let starter = StartReporter(FileDescriptor(rawValue: readyDescriptor))
        do {
            try await work(at: url, starter: starter)
            return 0
        } catch {
            // The process that started this one prints the message and exits with the same status.
            return starter.report(error)
        }
    }

    private func work(at url: String, starter: StartReporter?) async throws {
        // The environment can contain credentials and the password of the database.
        CommandLineProgram.protectMemory()
        let signals = TerminationSignals(hangUp: starter == nil) {}
        defer { signals.cancel() }
        if starter != nil {
            try StartReporter.detach()
            // A member in the foreground waits for an unreachable database. `agent start` fails instead, so that its user notices a wrong
            // URL or a missing privilege.
            let fleet = try Fleet(url, place: .anywhere)
            try await fleet.checkMemberPrivileges()
            await fleet.close()
        }
        let log = starter == nil ? nil : try RotatingLog.agentLog(in: options.folder)
        var logger = log?.logger ?? Logger(label: "transferq")
        logger.logLevel = options.verbose ? .debug : log == nil ? .notice : .info
        var configuration = FleetMemberConfiguration(slots: options.slots, labels: options.label, logger: logger)
        if let name = options.name { configuration.name = name }
        let member = try await FleetMember(
            of: url, folder: options.folder, transports: RegisteredTransports.builtIn.all.map(\.transport), configuration: configuration)
        let stop: @Sendable () -> Void = { Task { await member.stop() } }
        let socket: MemberSocket
        do {
            socket = try MemberSocket(for: member.queue, logger: logger, onStopRequest: stop)
        } catch {
            await member.queue.shutdown()
            throw error
        }
        signals.whenReceived(stop)
        do {
            try await member.run(whenJoined: { starter?.reportReady() }, shutDown: { await socket.shutDownQueue() })
        } catch {
            logger.error("\(error)")
            await log?.flush()
            throw error
        }
        await log?.flush()
    }
}

struct MemberStartCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "start", abstract: "Starts the member in the background, and returns when it has joined the fleet.",
        discussion: """
            The member reads credentials in environment variables from this shell. Its log is agent.log in the storage folder. A member that is \
            already running is left unchanged. "agent status" and "agent stop" need the same --store.

            Example: transferq --fleet postgresql://db.example.com/transferq agent start --slots 2
            """)

    @OptionGroup var options: MemberOptions
    @Flag(help: "Print JSON, one object per line.") var json = false

    /// Starts the member unless it is already running, and prints its status.
    ///
    /// - Parameter option: The value of `--fleet`; nil if the environment names the fleet.
    /// - Returns: The exit status.
    func run(fleetOption option: String?, _ program: CommandLineProgram) async throws -> Int32 {
        let folder = options.folder
        if await !MemberSocket.isOpen(in: folder) {
            try await AgentLaunch.start(
                (option.map { ["--fleet", $0] } ?? []) + ["agent", "run"] + options.arguments, loggingIn: folder)
        }
        return await program.run(["agent", "status", "--store", folder.string] + (json ? ["--json"] : []), on: nil)
    }
}
