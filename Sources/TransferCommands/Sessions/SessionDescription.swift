import Foundation
import TransferCore
import TransferKit

/// Formats sessions as text.
enum SessionDescription {
    static func shortID(_ id: SessionID) -> String { String(id.description.prefix(8)) }

    private static let reasonWidth = 60

    /// Index, ID, state, progress, size, name, account and reason.
    static func row(_ session: SessionStatus) -> [String] {
        [
            session.state == .draft ? "–" : "\(session.index)", shortID(session.id), session.state.rawValue, progress(session),
            Figures.size(session.statistics.bytesTotal),
            session.name,
            session.account, reason(session),
        ]
    }

    /// Why the session does not run, in a few words; empty if the state says it.
    private static func reason(_ session: SessionStatus) -> String {
        let text =
            switch session.why {
            case nil: session.state == .failed ? session.error?.message ?? "" : ""
            case .queueNotRunning, .queueLimit, .order: session.error.map { "retries after: \($0.message)" } ?? ""
            case .retry(let date): "retries at \(date.formatted(.iso8601)): \(session.error?.message ?? "")"
            case .notBefore(let date): "starts at \(date.formatted(.iso8601))"
            case .after(let id, let state): "after \(shortID(id)) (\(state.rawValue))"
            case .displaced(let id): "displaced by \(shortID(id))"
            case .accountBlocked(let error): "account blocked: \(error.message)"
            case .endpointsUnavailable(let date, let error): "retries at \(date.formatted(.iso8601)): \(error?.message ?? "")"
            case .noSpace(let error): error.message
            case .strictOrder(let id), .slotHeld(let id): "waits for \(shortID(id))"
            case let why?: why.description
            }
        return text.columns > reasonWidth ? text.fitted(to: reasonWidth) : text
    }

    static func lines(of session: SessionStatus) -> [String] {
        let statistics = session.statistics
        var lines = [
            "Session:   \(session.id)",
            "Name:      \(session.name)",
            "State:     \(session.state.rawValue)\(session.phase.map { ", \($0.rawValue)" } ?? "")",
        ]
        if let why = session.why { lines.append("Waiting:   \(why)") }
        lines += [
            "Index:     \(session.state == .draft ? "–" : "\(session.index)")",
            "Account:   \(session.account) (\(session.direction.rawValue))",
        ]
        if let endpoint = session.endpoint { lines.append("Endpoint:  \(endpoint)") }
        lines += [
            "Files:     \(statistics.filesDone) of \(statistics.files) done, \(statistics.filesFailed) failed",
            "Bytes:     \(Figures.size(statistics.bytesDone)) of \(statistics.bytesTotal.map(Figures.size) ?? "an unknown number")"
                + (statistics.bytesSent > statistics.bytesDone
                    ? ", \(Figures.size(statistics.bytesSent)) sent (\(progress(session)))" : " (\(progress(session)))"),
        ]
        if session.state == .running, let rate = statistics.rate {
            lines.append("Rate:      \(Figures.rate(rate)), \(Figures.time(statistics.secondsRemaining)) left")
        } else if let rate = statistics.averageRate {
            lines.append("Rate:      \(Figures.rate(rate)) on average")
        }
        lines.append("Attempts:  \(session.attempts)")
        if let error = session.error { lines.append("Error:     \(error)") }
        if !session.tags.isEmpty { lines.append("Tags:      \(session.tags.joined(separator: ", "))") }
        if let context = session.context { lines.append("Context:   \(String(decoding: context, as: UTF8.self))") }
        lines.append("Added:     \(session.createdAt.formatted(.iso8601))")
        if let date = session.startedAt { lines.append("Started:   \(date.formatted(.iso8601))") }
        if let date = session.endedAt { lines.append("Ended:     \(date.formatted(.iso8601))") }
        return lines
    }

    private static func progress(_ session: SessionStatus) -> String {
        if let percent = Figures.percent(session.statistics) { return "\(percent)%" }
        return session.state == .completed ? "100%" : "0%"
    }
}
