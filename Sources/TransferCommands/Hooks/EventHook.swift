import Foundation
import TransferCore
import TransferKit
import TransferOutput

/// Passes events to a program or a URL, in order and at least once.
///
/// The hook stores the revision (number) of each handled event before it handles the next one. After a crash of any process, the hook
/// continues after the stored revision. The hook can therefore repeat the event in progress, but loses no event.
actor EventHook {
    enum Target: Sendable {
        case program(HookProgram)
        case webhook(Webhook)
    }

    /// The first and the longest delay between two attempts. Each delay is twice the previous one, up to the longest delay.
    private static let delays = (first: Duration.seconds(1), longest: Duration.seconds(300))
    /// The number of consecutive skipped events after which the revision is stored, so that a restarted hook does not read all of them again.
    private static let skippedEventLimit = 1_000

    private let target: Target
    private let position: HookPosition
    private let warn: @Sendable (String) async -> Void
    private var skipped = 0

    /// - Parameter warn: Prints a message about a failed attempt.
    init(_ target: Target, _ position: HookPosition, warn: @escaping @Sendable (String) async -> Void) {
        self.target = target
        self.position = position
        self.warn = warn
    }

    /// The stored revision; nil if the hook has never run.
    nonisolated var revision: UInt64? { position.revision }

    /// Passes an event to the target, and repeats this until the target has handled the event.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - index: The index of the event's session in the queue; nil if it is unknown.
    ///   - revision: The revision to store, after which a restarted hook continues.
    /// - Throws: `CancellationError`, or a `CommandFailure` if the revision can't be stored.
    func handle(_ event: QueueEvent, index: Int?, upTo revision: UInt64) async throws {
        let body = Array((JSONValue(event, index: index).text + "\n").utf8)
        // After the storage folder was restored from a backup, new events have the same revisions as earlier events. The time
        // distinguishes these events. `min` and `max` prevent an overflow if the time is damaged.
        let id = "\(event.revision)-\(Int64(min(max(event.time.timeIntervalSince1970 * 1_000, 0), 1e15)))"
        var delay = Self.delays.first
        while let problem = await attempt(body, id) {
            await warn("\(problem) Event \(event.revision) will be repeated in \(delay.components.seconds) s.")
            try await Task.sleep(for: delay)
            delay = min(delay * 2, Self.delays.longest)
        }
        try await store(revision)
    }

    /// Skips an event that is not for this hook. Stores the revision only after ``skippedEventLimit`` consecutive calls.
    ///
    /// - Throws: A `CommandFailure` if the revision can't be stored.
    func skip(upTo revision: UInt64) async throws {
        skipped += 1
        if skipped >= Self.skippedEventLimit { try await store(revision) }
    }

    func store(_ revision: UInt64) async throws {
        skipped = 0
        try await BlockingIO.run(.storage) { [position] in try position.store(revision) }
    }

    /// Passes an event to the target once. Returns why the target did not handle the event; nil if it did.
    private func attempt(_ body: [UInt8], _ id: String) async -> String? {
        switch target {
        case .program(let program): await BlockingIO.run { program.run(body) }
        case .webhook(let webhook): await webhook.send(body, id: id, at: Date())
        }
    }
}
