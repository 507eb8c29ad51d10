import Foundation
import TransferCore
import TransferKit
import TransferOutput

/// The list of sessions with its toolbar.
struct SessionList {
    let state: PageState

    /// The operations of the toolbar, with the names of the `transferq` commands and the titles of the buttons.
    static let operations: [(name: String, title: String)] = [
        ("now", "Run now"), ("next", "Run next"), ("pause", "Pause"), ("resume", "Resume"), ("hold", "Hold"), ("release", "Release"),
        ("yield", "Yield"), ("retry", "Retry"), ("cancel", "Cancel"), ("remove", "Remove"),
    ]

    var html: HTML {
        """
        <form method="post" action="/forms" id="sessions" class="live"><input type="hidden" name="form" value="\(state.formToken)">
        \(state.canWrite ? toolbar : nil)
        <div id="list" class="list" tabindex="-1" data-total="\(state.filter.isActive ? -1 : state.status.sessions)">\(rows)</div>
        </form>
        <div id="pager">\(pager)</div>
        \(state.canWrite ? AddForm(state: state).html : nil)
        """
    }

    /// The rows, or a text that explains an empty list.
    var rows: HTML {
        guard !state.page.sessions.isEmpty else { return state.filter.isActive ? noMatch : empty }
        return """
            <ul class="rows" data-order="\(state.order)" data-start="\(state.filter.start)" data-next="\(state.page.next ?? -1)">\
            \(HTML.joined(state.page.sessions.map { SessionRow(session: $0, reason: state.reason(of: $0), isMovable: state.canWrite).html }))</ul>
            """
    }

    private var toolbar: HTML {
        """
        <div class="toolbar" role="toolbar" aria-label="Selected sessions"><button name="do" value="default" hidden></button><label class="all script"><input type="checkbox" id="all"> <span id="count">All</span></label>\
        \(HTML.joined(Self.operations.map { "<button name=\"do\" value=\"\($0.name)\"\($0.name == "remove" ? " class=\"danger\"" as HTML : "")>\($0.title)</button>" as HTML }))\
        <span class="group"><input name="at" type="number" min="0" aria-label="New index" placeholder="Index"><button name="do" value="move">Move</button></span>\
        <span class="group"><input name="rate" aria-label="Rate limit, such as 500K; empty for no limit" placeholder="Rate"><button name="do" value="rate">Limit</button></span></div>
        """
    }

    var pager: HTML {
        let (start, limit) = (state.filter.start, state.filter.limit)
        var links: [HTML] = []
        if start > 0, state.filter.isActive, !state.filter.listsDrafts {
            // The previous page starts at an unknown index, because the filter omits sessions between its matches.
            links.append("<a href=\"\(state.link(from: 0))\">First page</a>")
        } else if start > 0 {
            links.append("<a href=\"\(state.link(from: max(0, start - limit)))\">Previous</a>")
        }
        if let next = state.page.next { links.append("<a href=\"\(state.link(from: next))\">Next</a>") }
        return links.isEmpty ? "" : "<nav class=\"pager\" aria-label=\"Pages\">\(HTML.joined(links))</nav>"
    }

    private var noMatch: HTML {
        let start = state.filter.start
        if let next = state.page.next {
            return """
                <p class="empty"><strong>No session from #\(start) to #\(next - 1) matches.</strong> \
                <a href="\(state.link(from: next))">Search the following sessions</a></p>
                """
        }
        guard start > 0 else { return noMatchAtAll }
        let end: String = state.filter.listsDrafts ? "There are no more drafts." : "No session from #\(start) on matches."
        return "<p class=\"empty\"><strong>\(end)</strong> <a href=\"\(state.link(from: 0))\">Show the first page</a></p>"
    }

    private var noMatchAtAll: HTML {
        switch (state.view, state.filter.hasCriteria) {
        case (.drafts, false):
            """
            <p class="empty"><strong>There are no drafts.</strong> A draft is a session that waits outside the queue until you enqueue it. \
            To create one: <code>transferq upload --draft</code></p>
            """
        case (.drafts, true):
            "<p class=\"empty\"><strong>No draft matches.</strong> <a href=\"/?view=drafts\">Show all drafts</a></p>"
        case (.history, false):
            "<p class=\"empty\"><strong>No session has ended yet.</strong> Completed, failed and cancelled sessions appear here.</p>"
        case (.history, true):
            "<p class=\"empty\"><strong>No ended session matches.</strong> <a href=\"/?view=history\">Show all ended sessions</a></p>"
        case (.queue, _), (.active, _):
            "<p class=\"empty\"><strong>No session matches.</strong> <a href=\"/\">Show all sessions</a></p>"
        }
    }

    private var empty: HTML {
        guard state.filter.start == 0 else {
            return """
                <p class="empty"><strong>The queue has no session from #\(state.filter.start) on.</strong> \
                <a href="\(state.link(from: 0))">Show the first page</a></p>
                """
        }
        guard !state.accounts.isEmpty else {
            return """
                <div class="empty"><strong>The queue is empty, and there is no account.</strong>
                <p>An account is a name for a server and its credentials. Add one in a terminal:</p>
                <pre>transferq account add studio https://upload.example.com/files/ --token-env STUDIO_TOKEN</pre></div>
                """
        }
        return """
            <div class="empty"><strong>The queue is empty.</strong>
            <p>\(state.canWrite ? "Add a session below, or in a terminal:" : "Add a session in a terminal:")</p>
            <pre>transferq upload \(state.accounts[0].account.name) reel.mov</pre></div>
            """
    }
}

extension PageState {
    /// The reason why a session waits or has failed, or otherwise its endpoint. Contains the names of other sessions instead of their IDs.
    func reason(of session: SessionStatus) -> String {
        guard let why = session.why else { return session.error?.message ?? session.endpoint ?? "" }
        guard let other = why.session, let name = names[other] else { return why.description }
        return why.description.replacing(other.description, with: "\"\(name)\"")
    }

    /// The URL of the page with the same filter, at another index.
    func link(from start: Int) -> String {
        var parts = ["from=\(start)", "limit=\(filter.limit)"]
        let states = filter.namesStates ? filter.states.map(\.rawValue).sorted().joined(separator: ",") : ""
        for (name, value) in [
            ("view", view.rawValue), ("state", states), ("account", filter.account ?? ""), ("tag", filter.tag ?? ""),
            ("name", filter.text ?? ""),
        ]
        where !value.isEmpty {
            parts.append("\(name)=\(value.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")")
        }
        return "/?" + parts.joined(separator: "&")
    }
}

struct SessionRow {
    let session: SessionStatus
    /// The reason why the session waits or has failed, or otherwise its endpoint.
    let reason: String
    let isMovable: Bool

    var html: HTML {
        let id = session.id.description
        return """
            <li class="row" data-id="\(id)" data-index="\(session.index)" data-state="\(session.state.rawValue)">\
            <span class="pick"><input type="checkbox" name="id" value="\(id)" aria-label="Select \(session.name)">\
            \(isMovable && session.index >= 0 ? "<span class=\"handle script\" aria-hidden=\"true\" title=\"Drag to move\"></span>" as HTML : nil)</span>\
            <span class="what"><a class="name" href="/?session=\(id)">\(session.name)</a>\
            <span class="meta">\(session.index >= 0 ? "#\(session.index) · " as HTML : nil)\(session.direction.rawValue) · \(session.account)\
            \(HTML.joined(session.tags.map { "<span class=\"tag\">\($0)</span>" as HTML }))</span></span>\
            <span class="how"><span class="badge">\(Self.title(session))</span> <span class="why">\(reason)</span></span>\
            <span class="amount"><progress max="1000"\(progressValue) aria-label="Progress of \(session.name)"></progress>\
            <span class="figures">\(HTML.joined(figures))</span></span></li>
            """
    }

    static func title(_ session: SessionStatus) -> String {
        session.state == .running ? session.phase?.rawValue ?? "running" : session.state.rawValue
    }

    /// The attribute `value` of the progress bar; nil for a running session of unknown size.
    private var progressValue: HTML? {
        if session.state == .completed { return " value=\"1000\"" }
        guard let fraction = session.statistics.fractionCompleted, fraction.isFinite else {
            return session.state == .running ? nil : " value=\"0\""
        }
        // The bar is full only when the session is complete: after the last byte, the server may still have to confirm or store the file.
        return " value=\"\(Int(min(fraction, 0.99) * 1_000))\""
    }

    /// The figures of the session as separate elements, so that a line can break only between two figures.
    private var figures: [HTML] {
        let parts = Self.figures(session.statistics, session.state).components(separatedBy: " · ")
        return parts.enumerated().map { offset, part in
            let text: String = offset < parts.count - 1 ? part + " ·" : part
            return "<span>\(text)</span> "
        }
    }

    static func figures(_ statistics: SessionStatistics, _ state: SessionState) -> String {
        var parts: [String] = []
        let done = max(statistics.bytesDone, statistics.bytesSent)
        switch (state, statistics.bytesTotal) {
        case (.completed, let total): parts.append(Figures.size(total ?? done))
        case (_, let total?): parts.append("\(Figures.size(done)) of \(Figures.size(total))")
        case (_, nil): parts.append(Figures.size(done))
        }
        if statistics.files != 1 { parts.append("\(statistics.filesDone)/\(statistics.files) files") }
        if state == .running {
            if let rate = statistics.rate { parts.append(Figures.rate(rate)) }
            if let seconds = statistics.secondsRemaining { parts.append("\(Figures.time(seconds)) left") }
        } else if state == .completed, let rate = statistics.averageRate {
            parts.append("average \(Figures.rate(rate))")
        }
        return parts.joined(separator: " · ")
    }
}
