import Logging
import SystemPackage
import TransferControl
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Runs the queue as an agent, in the background or in the foreground.
struct Agent {
    let common: CommonOptions
    let limits: RunLimitOptions
    let web: AgentWebOptions
    /// The size in bytes at which the log is rotated.
    let logSize: Int
    /// Reports the result of the start to the process that started the agent; nil in the foreground.
    let starter: StartReporter?

    /// Runs the agent until this process receives a signal, or another command stops the agent. Returns after the queue has shut down.
    ///
    /// - Throws: An error if the agent can't start, for example because another process owns the queue.
    func run() async throws {
        ProcessMemoryProtection.enable()
        let (stopRequests, stopRequest) = AsyncStream.makeStream(of: Void.self)
        // Handle signals from here on, so that a signal during the start also ends the agent cleanly.
        let signals = TerminationSignals(hangUp: starter == nil) {}
        defer { signals.cancel() }
        signals.whenReceived { stopRequest.yield() }
        if starter != nil { try StartReporter.detach() }
        let (logger, log) = try logger()
        let queue = try await common.openedQueueToRun(limits: limits, logger: logger)
        let server: ControlServer
        do {
            // `transferq run` also runs without a control socket. An agent needs one, because other commands reach the queue only through it.
            server = try ControlServer(for: queue, as: .agent, logger: logger, onStopRequest: { stopRequest.yield() })
            let routes = await RouteWatch.start(for: queue)
            let memory = Task { await HeapMemory.returnFreedMemory(afterRemovalsFrom: queue) }
            defer {
                routes.cancel()
                memory.cancel()
            }
            try await queue.start()
            logger.notice("The agent is ready.", metadata: ["process": "\(getpid())", "version": "\(RootCommand.version)"])
            starter?.reportReady()
            let page = web.web ? WebProgram(try common.folder(), address: web.webListen, logger: logger) : nil
            let pageRun = Task { if let page { await page.run() } }
            for await _ in stopRequests { break }
            logger.notice("The agent is stopping. It interrupts running sessions.")
            page?.stop()
            pageRun.cancel()
            await server.shutDownQueue()
            await pageRun.value
            logger.notice("The agent has stopped.")
            await log?.flush()
        } catch {
            await queue.shutdown()
            throw error
        }
    }

    private func logger() throws -> (Logger, RotatingLog?) {
        var logger = common.logger
        let log = starter == nil ? nil : try RotatingLog.agentLog(in: common.folder(), limit: logSize)
        if let log { logger = log.logger }
        logger.logLevel = common.verbosity > 0 ? .debug : .info
        return (logger, log)
    }
}
