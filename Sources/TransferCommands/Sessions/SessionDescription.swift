import Foundation
import TransferCore
import TransferKit
import TransferOutput

enum SessionDescription {
    /// The number of digits in the first group of an ID.
    static let shortIDLength = 8

    static func shortID(_ id: SessionID) -> String { String(id.description.prefix(shortIDLength)) }

    /// Returns the cells of a session's table row: index, short ID, state, progress, size, name, account and reason.
    ///
    /// - Parameter isShort: Whether to omit the name of the server at the beginning of an error, because the row is for a terminal.
    static func row(_ session: SessionStatus, isShort: Bool) -> [String] {
        [
            session.state == .draft ? "–" : "\(session.index)", shortID(session.id), session.state.rawValue, progress(session),
            Figures.size(session.statistics.bytesTotal),
            session.name,
            session.account, isShort ? withoutServer(reason(session)) : reason(session),
        ]
    }

    /// Why the session does not run, in a few words; empty if its state explains this.
    private static func reason(_ session: SessionStatus) -> String {
        session.why.map { reason($0, session.error) } ?? (session.state == .failed ? session.error?.message ?? "" : "")
    }

    /// Omits the name of a server before the verb of an error: "The server https://one.example does not accept …".
    private static func withoutServer(_ text: String) -> String {
        text.replacing(#/(^|: )The server [^ ]+ (?=[a-z])/#, maxReplacements: 1) { String($0.1) }
    }

    /// Why a session waits, in a few words; empty if the session only waits for its turn or for the queue to start, and no attempt has failed.
    ///
    /// - Parameter error: The error of the session's last attempt.
    static func reason(_ why: WaitReason, _ error: TransferError?) -> String {
        switch why {
        case .queueNotRunning, .queueLimit, .order: error.map { "retries after: \($0.message)" } ?? ""
        case .retry(let date): "retries \(Figures.moment(date)): \(error?.message ?? "")"
        case .notBefore(let date): "starts \(Figures.moment(date))"
        case .after(let id, let state): "after \(shortID(id)) (\(state.rawValue))"
        case .displaced(let id): "displaced by \(shortID(id))"
        case .accountBlocked(let error): "account blocked: \(error.message)"
        case .endpointsUnavailable(let date, let error): "retries \(Figures.moment(date)): \(error?.message ?? why.description)"
        case .noSpace(let error): error.message
        case .strictOrder(let id), .slotHeld(let id): "waits for \(shortID(id))"
        default: why.description
        }
    }

    static func lines(of session: SessionStatus) -> [String] {
        let statistics = session.statistics
        var lines = [
            "Session:   \(session.id)",
            "Name:      \(session.name)",
            "State:     \(session.state.rawValue)\(session.phase.map { ", \($0.rawValue)" } ?? "")",
        ]
        if let why = session.why { lines.append("\(session.state == .running ? "Delayed: " : "Waiting: ")  \(why.advisedDescription)") }
        if let host = session.host { lines.append("Member:    \(host)") }
        lines += [
            "Index:     \(session.state == .draft ? "–" : "\(session.index)")",
            "Account:   \(session.account) (\(session.direction.rawValue))",
        ]
        if let endpoint = session.endpoint { lines.append("Endpoint:  \(endpoint)") }
        lines += [
            "Files:     \(statistics.filesDone) of \(statistics.files) done, \(statistics.filesFailed) failed",
            "Bytes:     \(bytes(of: session))",
        ]
        if session.state == .running, let rate = statistics.rate {
            lines.append("Rate:      \(Figures.rate(rate)), \(Figures.time(statistics.secondsRemaining)) left")
        } else if let rate = statistics.averageRate {
            lines.append("Rate:      \(Figures.rate(rate)) on average")
        }
        if let date = session.notBefore { lines.append("Starts:    \(Figures.date(date)), or later") }
        if let dependency = session.dependency {
            lines.append("After:     \(dependency.session) has \(dependency.acceptsAnyEnd ? "ended" : "completed")")
        }
        if let limit = session.rateLimit { lines.append("Max rate:  \(Figures.rate(Double(limit)))") }
        if let deadline = session.deadline { lines.append("Deadline:  \(Figures.time(deadline / .seconds(1))) after the first start") }
        lines.append("Attempts:  \(session.attempts)")
        if let error = session.error { lines.append("Error:     \(error)") }
        if let reference = Troubleshooting.reference(for: session.error) { lines.append("Advice:    \(reference)") }
        if !session.tags.isEmpty { lines.append("Tags:      \(session.tags.joined(separator: ", "))") }
        if let context = session.context { lines.append("Context:   \(String(decoding: context, as: UTF8.self))") }
        lines.append("Added:     \(Figures.date(session.createdAt))")
        if let date = session.startedAt { lines.append("Started:   \(Figures.date(date))") }
        if let date = session.endedAt { lines.append("Ended:     \(Figures.date(date))") }
        return lines
    }

    /// The confirmed bytes, the total, the sent bytes if they exceed the confirmed bytes, and the percentage of a known total.
    private static func bytes(of session: SessionStatus) -> String {
        let statistics = session.statistics
        var text = "\(Figures.size(statistics.bytesDone)) of \(statistics.bytesTotal.map(Figures.size) ?? "an unknown number")"
        if statistics.bytesSent > statistics.bytesDone { text += ", \(Figures.size(statistics.bytesSent)) sent" }
        return statistics.bytesTotal == nil ? text : "\(text) (\(progress(session)))"
    }

    /// The percentage; if the total of an unfinished session is unknown, the number of bytes.
    private static func progress(_ session: SessionStatus) -> String {
        let statistics = session.statistics
        if let percent = Figures.percent(statistics) { return "\(percent)%" }
        if session.state == .completed { return "100%" }
        return statistics.bytesTotal == nil ? Figures.size(max(statistics.bytesDone, statistics.bytesSent)) : "0%"
    }
}

extension WaitReason {
    /// The reason as a sentence, with the time of the next attempt or a command that helps, if any.
    var advisedDescription: String {
        switch self {
        case .diskBelowFloor: "\(self) To lower the minimum: transferq queue set --min-free SIZE"
        case .retry(let date): "The last attempt failed; the next one is due \(Figures.moment(date))."
        case .endpointsUnavailable(let date, let error):
            "The account's endpoints failed too often or asked to back off. The next attempt is due \(Figures.moment(date))."
                + (error.map { " \($0.message)" } ?? "")
        default: description
        }
    }
}
