import ArgumentParser
import TransferControl
import TransferKit
import TransferOutput

/// A command that applies an operation to the selected sessions and prints the IDs of the changed sessions.
protocol OperationCommand: AsyncParsableCommand {
    var common: CommonOptions { get }
    var selection: SessionSelection { get throws }
    var operation: SessionOperation { get async throws }
    /// Returns the operation after looking up values in the queue, such as the session for the ID prefix in an option.
    func resolved(_ operation: SessionOperation, in queue: any ControllableQueue) async throws -> SessionOperation
    /// Called after the operation, with the changed sessions.
    func didChange(_ sessions: [SessionID], in queue: any ControllableQueue) async throws
    /// The options of an operation that ends or removes sessions; nil for other operations.
    var confirmation: ConfirmationOptions? { get }
    /// The session states that allow the operation, but in which it changes nothing. The command does not print the IDs of such sessions.
    var unchangedStates: Set<SessionState> { get }
    /// Whether sessions can start after the operation. If so, the command explains how to run a queue that is not running.
    var startsSessions: Bool { get }
}

extension OperationCommand {
    static var aboutGroups: String {
        "Prints the IDs of the changed sessions. With --all or a filter, sessions in a state that does not allow the operation are left unchanged."
    }

    var confirmation: ConfirmationOptions? { nil }

    var unchangedStates: Set<SessionState> { [] }

    var startsSessions: Bool { false }

    func resolved(_ operation: SessionOperation, in queue: any ControllableQueue) async throws -> SessionOperation { operation }

    func didChange(_ sessions: [SessionID], in queue: any ControllableQueue) async throws {}

    func run() async throws {
        let (operation, selection) = (try await operation, try selection)
        if let confirmation, confirmation.dryRun || (confirmation.asks && !selection.hasIDs) {
            let sessions = try await common.withQueue { try await selection.sessions(in: $0) }
            let changing = sessions.filter { operation.canChange($0.state) }.map(\.id)
            guard !confirmation.dryRun else {
                await report(changing, mode: .running)
                let refusals = selection.hasIDs ? sessions.filter { !operation.canChange($0.state) }.map(operation.refusal) : []
                return try Self.throwFailure(for: refusals)
            }
            let unfinished = sessions.count { $0.state != .completed && operation.canChange($0.state) }
            if !changing.isEmpty, selection.isAll || unfinished > 1,
                try await confirmation.confirm(operation.question(about: changing.count))
            {
                // Sessions that were added after the question are not changed.
                let changed = try await common.withQueue { try await $0.apply(operation, to: SessionGroup.sessions(changing)) }
                return await CommandContext.current.output.write(changed, asJSON: common.json)
            }
        }
        var sessions: [SessionID]?
        var unchanged: Set<SessionID>?
        var mode: QueueStatus.Mode?
        let applied = try await common.withQueue { queue in
            mode = startsSessions ? try await queue.ownedMode : .running
            // Computed only once: if the queue's owner exits, this command repeats the operation, and the sessions may already have their
            // new states.
            if !unchangedStates.isEmpty, unchanged == nil {
                unchanged = Set(try await selection.sessions(in: queue).filter { unchangedStates.contains($0.state) }.map(\.id))
            }
            let applied = try await selection.apply(resolved(operation, in: queue), in: queue, resolved: &sessions)
            try await didChange(applied.changed, in: queue)
            return applied
        }
        let changed = applied.changed.filter { unchanged?.contains($0) != true }
        await report(changed, mode: mode)
        try Self.throwFailure(for: applied.refusals)
    }

    /// Prints the IDs of the changed sessions. Adds a note if no session was changed, or if the changed sessions can't start because the queue is
    /// not running.
    ///
    /// - Parameter mode: The mode of the queue; nil if no process owns it.
    private func report(_ changed: [SessionID], mode: QueueStatus.Mode?) async {
        await CommandContext.current.output.write(changed, asJSON: common.json)
        if changed.isEmpty, (try? selection.hasIDs) == false || !unchangedStates.isEmpty {
            await common.note("No session matches, or none is in a state that allows the operation. To list sessions: transferq list")
        } else if !changed.isEmpty, startsSessions {
            await common.note(aboutMode: mode)
        }
    }

    private static func throwFailure(for refusals: [QueueError]) throws {
        if refusals.count == 1 { throw CommandFailure(.rejected, CommandLineProgram.explanation(of: refusals[0]).message) }
        guard refusals.isEmpty else { throw CommandFailure(.rejected, refusals.map(\.message).joined(separator: "\n")) }
    }
}

extension SessionOperation {
    /// Whether an operation that needs a confirmation changes a session in this state.
    fileprivate func canChange(_ state: SessionState) -> Bool {
        if case .cancel = self { ![.cancelled, .completed, .draft].contains(state) } else { true }
    }

    /// The error for a session whose state does not allow the operation, as the queue would report it.
    fileprivate func refusal(of session: SessionStatus) -> QueueError {
        let (state, advice) = session.state == .draft ? ("a draft", " Enqueue it first.") : (session.state.rawValue, "")
        let message = "The session \(session.id) is \(state), so it can't be \(participle).\(advice)"
        return addingAdvice(to: QueueError(.invalidTransition, message), of: session)
    }

    fileprivate func question(about count: Int) -> String {
        let sessions = Figures.count(count, "session")
        return switch self {
        case .cancel(discarding: true): "Cancel \(sessions), and remove their unfinished content?"
        case .cancel: "Cancel \(sessions)?"
        default: "Remove \(sessions)?"
        }
    }
}

extension OutputWriter {
    func write(_ ids: [SessionID], asJSON isJSON: Bool) async {
        let lines = ids.map { isJSON ? (["id": .string($0.description)] as JSONValue).text : $0.description }
        await write(lines.map { $0 + "\n" }.joined())
    }
}
