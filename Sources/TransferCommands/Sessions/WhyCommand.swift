import ArgumentParser
import SystemPackage
import TransferControl
import TransferCore
import TransferKit
import TransferOutput

struct WhyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "why", abstract: "Explains why a session is not running.",
        discussion: """
            For a waiting session, prints the first unmet condition. For other sessions, prints the state.

            Example: transferq why 3f2a
            """)

    @OptionGroup var common: CommonOptions

    @Argument(help: "\(SessionPrefix.help).", completion: Candidates.sessions)
    var id: String

    func run() async throws {
        let (session, mode) = try await common.withQueue { queue in
            do {
                let session = try await queue.status(of: SessionPrefix.resolve(id, in: queue))
                return (session, try await queue.ownedMode)
            } catch let failure as CommandFailure where failure.status == .rejected && !id.isEmpty {
                let rows = (try? await queue.quarantined()) ?? []
                guard let row = rows.first(where: { $0.session?.description.hasPrefix(id.lowercased()) ?? false }) else { throw failure }
                throw CommandFailure(
                    .rejected,
                    "The session \(id) is in quarantine: \(row.reason) To retry: transferq quarantine retry \(row.number)"
                )
            }
        }
        let output = CommandContext.current.output
        if common.json {
            await output.write([
                "id": .string(session.id.description), "index": JSONValue(session.state == .draft ? nil : session.index),
                "state": .string(session.state.rawValue),
                "phase": JSONValue(session.phase?.rawValue), "why": JSONValue(session.why?.description),
                "error": JSONValue(session.error, file: session.failedItem?.string),
            ])
        } else {
            await output.write(Self.sentence(session, mode).withoutControlCharacters + "\n")
        }
    }

    private static func sentence(_ session: SessionStatus, _ mode: QueueStatus.Mode?) -> String {
        if let why = session.why, session.state != .running {
            return sentence(why, session.error, mode, isWaiting: session.state == .waiting)
        }
        return switch session.state {
        case .waiting: "The session is waiting for its turn."
        case .running:
            "The session is running\(session.host.map { " on the member \"\($0)\"" } ?? "")\(session.phase.map { " (\($0.rawValue))" } ?? "")."
                + (session.why.map { " \($0)" } ?? "")
        case .paused: "The session is paused. To resume it: transferq resume \(SessionDescription.shortID(session.id))"
        case .draft:
            "The session is a draft. To add it to the queue: transferq enqueue \(SessionDescription.shortID(session.id))"
        case .held: "The session is held. To release it: transferq release \(SessionDescription.shortID(session.id))"
        case .cancelled: "The session was cancelled."
        case .completed: "The session is completed."
        case .failed:
            ["The session failed.", session.error?.message, Troubleshooting.reference(for: session.error)].compactMap(\.self)
                .joined(separator: " ")
        }
    }

    /// Joins the last error (unless the reason contains it), the reason, a reference to the documentation, and advice if the queue is not
    /// running.
    ///
    /// - Parameter mode: The mode of the queue; nil if no process owns it.
    private static func sentence(_ why: WaitReason, _ error: TransferError?, _ mode: QueueStatus.Mode?, isWaiting: Bool) -> String {
        var sentences: [String] = []
        switch (why, error) {
        case (.retry(let date), let error?):
            sentences.append("The last attempt failed: \(error.message) The next one is due \(Figures.moment(date)).")
        case (.accountBlocked, _), (.endpointsUnavailable, _), (.noSpace, _): sentences.append(why.advisedDescription)
        default:
            sentences += error.map { ["The last attempt failed: \($0.message)"] } ?? []
            if why != .queueNotRunning { sentences.append(why.advisedDescription) }
        }
        if let reference = Troubleshooting.reference(for: error ?? why.error) { sentences.append(reference) }
        if isWaiting, mode == nil {
            sentences.append("\(WaitReason.queueNotRunning) To run it: transferq run, or transferq agent start")
        } else if isWaiting, let notice = mode?.notice {
            sentences.append(notice)
        }
        return sentences.joined(separator: " ")
    }
}

extension WaitReason {
    /// The error that the reason contains; nil for reasons without an error.
    fileprivate var error: TransferError? {
        switch self {
        case .accountBlocked(let error), .noSpace(let error): error
        case .endpointsUnavailable(_, let error): error
        default: nil
        }
    }
}
