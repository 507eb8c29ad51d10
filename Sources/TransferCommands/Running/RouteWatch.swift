import TransferKit

/// Reports the network of this machine to a queue of this process: whether there is a route to other machines, and whether the network is metered.
enum RouteWatch {
    /// The shortest time between two wake-ups. Programs can add many routes at the same time.
    private static let interval = Duration.milliseconds(300)
    /// The time to wait for NetworkManager before a new route ends the waits of sessions.
    private static let patience = Duration.milliseconds(500)

    /// Reports the network to a queue that has not started, and then its changes. A new route ends the waits for unreachable servers.
    ///
    /// Changes are reported only on systems with netlink.
    ///
    /// - Returns: The task that reports changes, until it is cancelled.
    static func start(for queue: TransferQueue) async -> Task<Void, Never> {
        // Subscribes before it reads the routes, so that no change is missed.
        let changes = RouteTable.changes()
        let hasRoute = await BlockingIO.run { RouteTable.hasRoute() } ?? true
        if changes != nil, !hasRoute { queue.noteLackOfRoutes() }
        let network = NetworkReporter(queue)
        await network.check().value
        return Task { if let changes { await run(queue, network, changes, hadRoute: hasRoute) } }
    }

    private static func run(_ queue: TransferQueue, _ network: NetworkReporter, _ changes: RouteTable.Changes, hadRoute: Bool) async {
        var hadRoute = hadRoute
        for await _ in changes.signals {
            let isNew = changes.takeNews()
            let hasRoute = await BlockingIO.run { RouteTable.hasRoute() } ?? true
            if !hasRoute {
                queue.noteLackOfRoutes()
            } else if isNew || !hadRoute {
                // First the condition, because the new route can belong to a metered network. NetworkManager may not respond.
                await wait(for: await network.check(), atMost: patience)
                // An error means that the store fails or that the queue has shut down. A later route can end the waits.
                try? await queue.noteNewRoute()
                await network.checkLater()
            }
            hadRoute = hasRoute
            guard (try? await Task.sleep(for: interval)) != nil else { return }
        }
    }

    /// Returns when a task has ended, or after a time.
    private static func wait(for task: Task<Void, Never>, atMost limit: Duration) async {
        let (end, continuation) = AsyncStream.makeStream(of: Void.self)
        let waiting = Task {
            await task.value
            continuation.finish()
        }
        let timer = Task {
            try? await Task.sleep(for: limit)
            continuation.finish()
        }
        for await _ in end {}
        timer.cancel()
        waiting.cancel()
    }
}

/// Reports to a queue whether the network is metered.
private actor NetworkReporter {
    /// The delay before a second check. NetworkManager may detect a metered network only after its routes have changed.
    private static let delay = Duration.seconds(1)

    private let queue: TransferQueue
    private var condition = NetworkCondition.unconstrained
    private var current: Task<Void, Never>?
    private var isDue = false
    private var later: Task<Void, Never>?

    init(_ queue: TransferQueue) { self.queue = queue }

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

    /// Sets the condition of the network if it has changed.
    private func report() async {
        let found = await MeteredNetwork.isMetered() ? NetworkCondition.expensive : .unconstrained
        guard found != condition, (try? await queue.setNetworkCondition(found)) != nil else { return }
        condition = found
    }
}
