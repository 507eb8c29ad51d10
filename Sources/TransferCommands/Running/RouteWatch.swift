import TransferKit

/// Reports the state of this machine's network to a queue in this process: whether there is a route to other machines, and whether the network is
/// metered.
struct RouteWatch {
    /// The minimum time between two reports about routes. Programs can add many routes at the same time.
    private static let interval = Duration.milliseconds(300)
    /// The time to wait for NetworkManager before the queue starts, and before a new route ends the waits of sessions.
    fileprivate static let responseTimeout = Duration.milliseconds(500)

    private let network: NetworkReporter
    private let task: Task<Void, Never>

    /// Reports the state of the network to a queue that has not started, and then each change of this state. After a new route, the queue
    /// retries unreachable servers.
    ///
    /// Only systems with netlink report changes. If NetworkManager does not respond within ``responseTimeout``, the queue treats the network as
    /// metered until the response.
    static func start(for queue: TransferQueue) async -> RouteWatch {
        // Subscribes before reading the routes, so that no change is missed.
        let changes = RouteTable.changes()
        let hasRoute = await BlockingIO.run { RouteTable.hasRoute() } ?? true
        if changes != nil, !hasRoute { queue.noteLackOfRoutes() }
        let network = NetworkReporter(queue)
        await network.begin()
        return RouteWatch(network: network, task: Task { if let changes { await run(queue, network, changes, hadRoute: hasRoute) } })
    }

    func cancel() { task.cancel() }

    /// The task that waits for the first response of NetworkManager; nil after the response.
    var firstResponse: Task<Void, Never>? {
        get async { await network.firstResponse }
    }

    private static func run(_ queue: TransferQueue, _ network: NetworkReporter, _ changes: RouteTable.Changes, hadRoute: Bool) async {
        var hadRoute = hadRoute
        for await _ in changes.signals {
            let hasNewRoute = changes.hasNewRouteSinceLastCall()
            let hasRoute = await BlockingIO.run { RouteTable.hasRoute() } ?? true
            if !hasRoute {
                queue.noteLackOfRoutes()
            } else if hasNewRoute || !hadRoute {
                // Reports the network's condition first, because the new route can belong to a metered network. The time is limited, because
                // NetworkManager may not respond.
                _ = await wait(for: await network.check(), or: timer())
                // An error means that the queue can't store changes, or that the queue has shut down. A later route can end the waits.
                try? await queue.noteNewRoute()
                await network.checkLater()
            }
            hadRoute = hasRoute
            guard (try? await Task.sleep(for: interval)) != nil else { return }
        }
    }

    /// Returns a task that ends after ``responseTimeout``, when NetworkManager should have responded.
    fileprivate static func timer() -> Task<Void, Never> { Task { _ = try? await Task.sleep(for: responseTimeout) } }

    /// Returns when one of two tasks has ended, or the current task was cancelled. Then cancels `other`.
    ///
    /// - Returns: Whether the first task ended first.
    static func wait<Value>(for task: Task<Value, Never>, or other: Task<Void, Never>) async -> Bool {
        let (ends, continuation) = AsyncStream.makeStream(of: Bool.self)
        Task {
            _ = await task.value
            continuation.yield(true)
        }
        Task {
            await other.value
            continuation.yield(false)
        }
        defer { other.cancel() }
        for await isFirst in ends { return isFirst }
        return false
    }
}

/// Reports to a queue whether the network is metered.
private actor NetworkReporter {
    /// The delay before a second check. NetworkManager may detect a metered network only some time after the routes have changed.
    private static let delay = Duration.seconds(1)

    private let queue: TransferQueue
    private var condition = NetworkCondition.unconstrained
    private var current: Task<Void, Never>?
    private var isDue = false
    private var later: Task<Void, Never>?
    /// Finished when the condition is known or assumed for the first time.
    private var startContinuation: AsyncStream<Void>.Continuation?
    private var isAssumed = false

    init(_ queue: TransferQueue) { self.queue = queue }

    /// Starts the first check. Returns when the condition is known, or assumed because NetworkManager does not respond.
    func begin() async {
        let (started, continuation) = AsyncStream.makeStream(of: Void.self)
        startContinuation = continuation
        check()
        for await _ in started {}
    }

    /// The check in progress if the condition is an assumption; otherwise nil.
    var firstResponse: Task<Void, Never>? { isAssumed ? current : nil }

    /// Starts a check. If a check is in progress, another one follows it.
    ///
    /// - Returns: The task of the checks, which ends after the result is reported.
    @discardableResult
    func check() -> Task<Void, Never> {
        isDue = true
        if let current { return current }
        let task = Task {
            while isDue {
                isDue = false
                await report()
            }
            current = nil
        }
        current = task
        return task
    }

    /// Starts a check after ``delay``. Replaces an earlier call whose check has not started.
    func checkLater() {
        later?.cancel()
        later = Task {
            if (try? await Task.sleep(for: Self.delay)) != nil { check() }
        }
    }

    private func report() async {
        let response = Task { await MeteredNetwork.isMetered() ? NetworkCondition.expensive : .unconstrained }
        if startContinuation != nil, await !RouteWatch.wait(for: response, or: RouteWatch.timer()) {
            isAssumed = true
            await set(.expensive)
            startContinuation?.finish()
        }
        await set(response.value)
        isAssumed = false
        startContinuation?.finish()
        startContinuation = nil
    }

    private func set(_ found: NetworkCondition) async {
        guard found != condition, (try? await queue.setNetworkCondition(found)) != nil else { return }
        condition = found
    }
}
