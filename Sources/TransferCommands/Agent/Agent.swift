import Logging
import SystemPackage
import TransferControl
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The queue in the background.
struct Agent {
    let common: CommonOptions
    let jobs: Int?
    /// The process that waits for this one to be ready; nil in the foreground.
    let starter: AgentStarter?

    /// Returns when it was told to end and has let the queue go.
    func run() async throws {
        ProcessSecrecy.begin()
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        // Before anything else: a signal from now on is an orderly end.
        let signals = TerminationSignals(hangUp: starter == nil) {}
        defer { signals.cancel() }
        signals.whenReceived { end.yield() }
        if starter != nil {
            // Away from the terminal and its signals (setsid(2)), and in nobody's way when a file system is to be unmounted.
            _ = setsid()
            signal(SIGHUP, SIG_IGN)
            guard unsafe chdir("/") == 0 else {
                throw CommandFailure(.storage, "The root folder can't be entered (\(Errno(rawValue: errno))).")
            }
        }
        let (logger, log) = try logger()
        let queue = try await common.openedQueueToRun(sessionLimit: jobs, logger: logger)
        let server: ControlServer
        do {
            // An agent that nobody can talk to is of no use.
            server = try ControlServer(for: queue, as: .agent, logger: logger, endOwner: { end.yield() })
            async let narration: Void = narrate(queue.events, of: queue, to: logger)
            try await queue.start()
            logger.notice("The agent is ready.", metadata: ["process": "\(getpid())", "version": "\(RootCommand.version)"])
            starter?.tellReady()
            for await _ in ends { break }
            logger.notice("The agent ends: what runs is interrupted.")
            await server.shutDownQueue()
            await narration
            logger.notice("The agent has ended.")
            await log?.flush()
        } catch {
            await queue.shutdown()
            throw error
        }
    }

    private func logger() throws -> (Logger, RotatingLog?) {
        var logger = common.logger
        let folder = try common.folder()
        // The queue would make it, and needs the log before.
        if starter != nil { try StorageFolder.prepare(folder) }
        let log = starter == nil ? nil : try RotatingLog(at: folder.appending(RotatingLog.name))
        if let log { logger = Logger(label: "transferq") { _ in FileLogHandler(log: log) } }
        logger.logLevel = common.verbosity > 0 ? .debug : .info
        return (logger, log)
    }

    /// Logs what a person would want to know the next day.
    private func narrate(_ events: QueueEvents, of queue: TransferQueue, to logger: Logger) async {
        var names: [SessionID: String] = [:]
        for await event in events {
            if let id = event.session, names[id] == nil { names[id] = try? await queue.session(id).name }
            let name = event.session.map { "\(SessionDescription.shortID($0)) \(names[$0] ?? "")" }
            guard let line = EventDescription.line(of: event.kind, name: name) else { continue }
            logger.info("\(line)")
            switch event.kind {
            case .completed(let id), .failed(let id, _): names[id] = nil
            case .removed(let ids, _), .cancelled(let ids): for id in ids { names[id] = nil }
            default: break
            }
        }
    }
}
