import Foundation
import TransferCore
import TransferKit
import TransferOutput

/// The parts of the page that show the whole queue.
struct StatusPanels {
    let state: PageState

    var summary: HTML {
        let (status, statistics) = (state.status, state.statistics)
        let waiting = status.paused + status.held + status.waiting
        return """
            <p class="mode" data-mode="\(status.mode.rawValue)">\(status.isIdle ? "idle" : status.mode.rawValue)</p>
            <dl><div><dt>Rate</dt><dd>\(Figures.rate(statistics.rate ?? 0))</dd></div><div><dt>Time left</dt><dd>\(Figures.time(statistics.secondsRemaining))</dd></div>\
            <div><dt>Bytes left</dt><dd>\(Figures.size(statistics.bytesRemaining))</dd></div><div><dt>Running</dt><dd>\(status.running)\(status.sessionLimit.map { " of \($0)" } ?? "")</dd></div>\
            <div><dt>Waiting</dt><dd>\(waiting)</dd></div><div><dt>Failed</dt><dd>\(status.failed)</dd></div><div><dt>Limit</dt><dd>\(status.currentRateLimit.map { Figures.rate(Double($0)) } ?? "none")\(timetable(status.timetable))</dd></div></dl>
            """
    }

    private func timetable(_ timetable: BandwidthTimetable?) -> HTML? {
        timetable.map { "<span class=\"hint\">\($0.text)</span>" }
    }

    var accounts: HTML {
        guard !state.accounts.isEmpty else {
            return "<p class=\"empty\">There is no account. To add one: <code>transferq account add</code></p>"
        }
        return "<ul class=\"accounts\">\(HTML.joined(state.accounts.map(account)))</ul>"
    }

    private func account(_ status: AccountStatus) -> HTML {
        let name = status.account.name
        let health: HTML =
            if let error = status.blockingError {
                "<span class=\"badge bad\">blocked</span> <span class=\"why\">\(error.message)</span>\(state.canWrite ? unblock(name) : nil)"
            } else if status.isUnavailable {
                "<span class=\"badge bad\">unavailable</span>"
            } else {
                "<span class=\"badge good\">ready</span>"
            }
        let limits = [
            status.account.maxConcurrentSessions.map { Figures.count($0, "session") },
            status.currentRateLimit.map { Figures.rate(Double($0)) },
        ].compactMap(\.self)
        return """
            <li><strong>\(name)</strong> \(health)<span class="meta">\(Figures.count(status.sessions, "session"))\
            \(limits.isEmpty ? nil : " · at most \(limits.joined(separator: ", "))" as HTML)</span>\
            \(timetable(status.account.timetable))\
            \(HTML.joined(status.account.endpoints.map { endpoint($0, status.unavailableEndpoints) }))</li>
            """
    }

    private func endpoint(_ endpoint: Endpoint, _ unavailable: [UnavailableEndpoint]) -> HTML {
        guard let found = unavailable.first(where: { $0.location == endpoint.location }) else {
            return "<span class=\"meta\">\(endpoint.displayAddress)</span>"
        }
        return """
            <span class="meta">\(endpoint.displayAddress) <span class="why">is unavailable until \(Figures.date(found.nextAttempt)). \(found.error?.message ?? "")</span></span>
            """
    }

    private func unblock(_ name: String) -> HTML {
        """
        <form method="post" action="/forms" class="live"><input type="hidden" name="form" value="\(state.formToken)">\
        <input type="hidden" name="account" value="\(name)"><button class="quiet" name="do" value="unblock">Unblock \(name)</button></form>
        """
    }

    /// The latest events, newest first.
    var log: HTML {
        let lines = state.events.reversed().compactMap { numbered -> HTML? in
            let event = numbered.event
            // A removed session has no name, so the log shows the beginning of its ID, as the output of `transferq` does.
            let name = event.session.map { state.names[$0] ?? String($0.description.prefix(8)) }
            guard
                let line = EventDescription.line(of: event.kind, name: name) ?? EventDescription.changeLine(of: event.kind, name: name)
            else { return nil }
            let word = line.prefix { $0 != " " }
            let rest = line.dropFirst(word.count).drop { $0 == " " }
            let time = event.time.formatted(Date.ISO8601FormatStyle(timeZone: .current).time(includingFractionalSeconds: false))
            return """
                <li><time datetime="\(event.time.formatted(.iso8601))">\(time)</time> <b class="verb \(String(word))">\(String(word))</b> \(String(rest))</li>
                """
        }
        guard !lines.isEmpty else { return "<p class=\"empty\">Nothing has happened yet.</p>" }
        return "<ol>\(HTML.joined(lines.prefix(60)))</ol>"
    }
}
