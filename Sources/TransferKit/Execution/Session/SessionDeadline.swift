/// Watches ``SessionOptions/deadline`` of a run's session.
struct SessionDeadline {
    private let context: RunContext
    /// The uptime from which the deadline counts.
    private let start: Duration
    /// The deadline for which a task waits.
    private var watched: Duration?

    init(_ context: RunContext) {
        self.context = context
        start = context.deadlineFrom ?? context.clock.now()
    }

    private var rest: Duration? { context.options.deadline.map { $0 - (context.clock.now() - start) } }

    /// Whether the deadline has passed.
    var isExceeded: Bool { rest.map { $0 <= .zero } ?? false }

    /// Adds a task that ends at the deadline, and a task that ends when the app changes the session's options. After such a change, the caller must call
    /// this method again.
    mutating func watch(_ group: inout TaskGroup<SessionFiles.Event>) {
        let changes = context.live.optionChanges
        let version = changes.version
        group.addTask {
            try? await changes.wait(after: version)
            return .optionsChanged
        }
        guard let rest else {
            watched = nil
            return
        }
        guard context.options.deadline != watched else { return }
        watched = context.options.deadline
        group.addTask { [clock = context.clock] in
            if rest > .zero { try? await clock.sleep(rest) }
            return .deadline
        }
    }
}
