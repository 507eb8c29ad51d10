import Foundation
import TransferCore
import TransferKit
import TransferOutput

/// Passes events to a program or a URL, in order and at least once.
///
/// The revision of each handled event is stored before the next event. After a crash of any process, the hook continues after this revision, so the
/// event in progress can be repeated, but none is lost.
actor EventHook {
    enum Target: Sendable {
        case program(HookProgram)
        case webhook(Webhook)
    }

    /// The first and the longest delay between two attempts. Each delay is twice the previous one, up to the longest delay.
    private static let delays = (first: Duration.seconds(1), longest: Duration.seconds(300))
    /// The number of consecutive skipped events after which the revision is stored, so that a restarted hook does not read all of them again.
    private static let skippedEvents = 1_000

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

    /// The revision of the last handled event; nil if the hook has never run.
    nonisolated var revision: UInt64? { position.revision }

    /// Passes an event to the target. Repeats this until the target has handled the event.
    ///
    /// - Parameter revision: The revision to continue after.
    /// - Throws: `CancellationError`, or a `CommandFailure` if the revision can't be stored.
    func handle(_ event: QueueEvent, index: Int?, upTo revision: UInt64) async throws {
        let body = Array((JSONValue(event, index: index).text + "\n").utf8)
        // The time distinguishes events with the same revision, before and after a store was restored. A damaged time must not cause an overflow.
        let id = "\(event.revision)-\(Int64(min(max(event.time.timeIntervalSince1970 * 1_000, 0), 1e15)))"
        var delay = Self.delays.first
        while let problem = await attempt(body, id) {
            await warn("\(problem) Event \(event.revision) is repeated in \(delay.components.seconds) s.")
            try await Task.sleep(for: delay)
            delay = min(delay * 2, Self.delays.longest)
        }
        try await store(revision)
    }

    /// Records that an event is not for this hook.
    func skip(upTo revision: UInt64) async throws {
        skipped += 1
        if skipped >= Self.skippedEvents { try await store(revision) }
    }

    /// Stores the revision after which the hook continues.
    func store(_ revision: UInt64) async throws {
        skipped = 0
        try await BlockingIO.run(.storage) { [position] in try position.store(revision) }
    }

    private func attempt(_ body: [UInt8], _ id: String) async -> String? {
        switch target {
        case .program(let program): await BlockingIO.run { program.run(body) }
        case .webhook(let webhook): await webhook.send(body, id: id, at: Date())
        }
    }
}
