import TransferCore
import TransferKit
import TransferOutput

/// The HTML document of the web page. The web page also works without scripts, because each action is a plain form.
struct PageDocument {
    let state: PageState

    var html: HTML {
        """
        \(Self.head)
        <body data-access="\(state.canWrite ? "write" : "read")" data-revision="\(state.status.revision)">
        <a class="skip" href="#list">Skip to the sessions</a>
        <header class="top">
        <h1><img src="/icon.svg" alt="" width="28" height="28"> transferq</h1>
        <div id="status" class="status">\(StatusPanels(state: state).summary)</div>
        <div class="menu">\(queueControls)<button type="button" class="quiet script" id="help-button" aria-haspopup="dialog">Keys</button>\
        <form method="post" action="/logout"><input type="hidden" name="form" value="\(state.formToken)"><button class="quiet">Sign out</button></form></div>
        </header>
        <p id="notice" class="notice" role="alert"\(state.message == nil ? " hidden" : "")>\(state.message ?? "")</p>
        <main>
        <section class="sessions" aria-labelledby="sessions-title">
        <h2 id="sessions-title" class="hidden">Sessions</h2>
        \(tabs)
        \(SessionList(state: state).html)
        </section>
        <div class="side">
        \(state.detail.map { SessionDetailPanel(detail: $0, state: state).html })
        <section class="panel" aria-labelledby="rate-title"><h2 id="rate-title">Rate, last 10 minutes</h2>
        <div id="graph" class="graph"><p class="empty">The graph needs a script.</p></div></section>
        <section class="panel" aria-labelledby="accounts-title"><h2 id="accounts-title">Accounts</h2><div id="accounts">\(StatusPanels(state: state).accounts)</div></section>
        <section class="panel" aria-labelledby="log-title"><h2 id="log-title">Log</h2><div id="log" class="log" tabindex="0" role="region" aria-labelledby="log-title">\(StatusPanels(state: state).log)</div></section>
        \(state.canWrite ? settings : nil)
        </div>
        </main>
        <dialog id="dialog" aria-labelledby="dialog-title"></dialog>
        <template id="keys">\(Self.keys)</template>
        <p id="toast" class="toast" role="status" hidden></p>
        </body></html>
        """
    }

    static let head: HTML = """
        <!doctype html>
        <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark"><title>transferq</title>
        <link rel="icon" href="/icon.svg"><link rel="stylesheet" href="/page.css"><script src="/page.js" defer></script></head>
        """

    private var queueControls: HTML? {
        guard state.canWrite else { return nil }
        let isRunning = state.status.mode == .running
        return """
            <form method="post" action="/forms" class="live" aria-label="The queue"><input type="hidden" name="form" value="\(state.formToken)">\
            <button name="do" value="start"\(isRunning ? " class=\"quiet\"" as HTML : nil)>Start</button>\
            <button class="quiet" name="do" value="drain">Drain</button><button class="quiet" name="do" value="stop">Stop</button></form>
            """
    }

    private var tabs: HTML {
        let filter = state.filter
        return """
            <div class="tabs"><nav aria-label="Views">\(HTML.joined(PageState.View.allCases.map(link)))</nav>
            <form method="get" action="/" class="filter" role="search">\
            \(state.view == .queue ? nil : "<input type=\"hidden\" name=\"view\" value=\"\(state.view.rawValue)\">" as HTML)\
            <input type="search" name="name" aria-label="Name contains" placeholder="Name" value="\(filter.text ?? "")">\
            <select name="account" aria-label="Account"><option value="">All accounts</option>\(HTML.joined(state.accounts.map { option($0.account.name, filter.account) }))</select>\
            <input name="tag" aria-label="Tag" placeholder="Tag" value="\(filter.tag ?? "")"><button class="quiet">Filter</button></form></div>
            """
    }

    private func link(_ view: PageState.View) -> HTML {
        let target = view == .queue ? "/" : "/?view=\(view.rawValue)"
        return "<a href=\"\(target)\"\(view == state.view ? " aria-current=\"page\"" as HTML : "")>\(view.title)</a>"
    }

    private func option(_ value: String, _ selected: String?) -> HTML {
        "<option value=\"\(value)\"\(value == selected ? " selected" as HTML : "")>\(value)</option>"
    }

    private var settings: HTML {
        let status = state.status
        let (limit, rate) = (status.sessionLimit.map { "\($0)" } ?? "", status.rateLimit.map { "\($0)" } ?? "")
        let before = [("maxSessions", limit), ("rateLimit", rate), ("timetable", status.timetable?.text ?? "")].map { name, value in
            "<input type=\"hidden\" name=\"\(name)\(FormAction.renderedSuffix)\" value=\"\(value)\">" as HTML
        }
        return """
            <details class="panel"><summary><h2>Limits of the queue</h2></summary>
            <form method="post" action="/forms" class="fields live"><input type="hidden" name="form" value="\(state.formToken)">\(HTML.joined(before))
            <label>Concurrent sessions <input name="maxSessions" type="number" min="1" value="\(limit)"></label>
            <label>Rate <input name="rateLimit" placeholder="no limit" value="\(rate)" aria-describedby="rate-hint"></label>
            <p id="rate-hint" class="hint">Bytes per second, such as 500K or 2M. Empty for no limit.</p>
            <label>Timetable <input name="timetable" placeholder="none" value="\(status.timetable?.text ?? "")" aria-describedby="timetable-hint"></label>
            <p id="timetable-hint" class="hint">Other rates at some times, such as mon-fri 08:00-18:00 2M; sat-sun 500K; * off</p>
            <button name="do" value="limits">Save limits</button></form></details>
            """
    }

    private static let keys: HTML = """
        <h2 id="dialog-title">Keys</h2><p>The keys work while the list of sessions has the focus.</p><dl class="keys">
        <dt><kbd>↑</kbd> <kbd>↓</kbd></dt><dd>Previous or next session; with <kbd>Alt</kbd>, move the session</dd>
        <dt><kbd>Home</kbd> <kbd>End</kbd></dt><dd>First or last session; with <kbd>Alt</kbd>, move the session there</dd>
        <dt><kbd>Space</kbd></dt><dd>Select; with <kbd>Shift</kbd>, select a range</dd>
        <dt><kbd>Ctrl</kbd> <kbd>A</kbd></dt><dd>Select the listed sessions</dd>
        <dt><kbd>Enter</kbd></dt><dd>Details</dd>
        <dt><kbd>N</kbd> <kbd>X</kbd></dt><dd>Run now; run next</dd>
        <dt><kbd>P</kbd> <kbd>R</kbd></dt><dd>Pause; resume</dd>
        <dt><kbd>H</kbd> <kbd>L</kbd></dt><dd>Hold; release</dd>
        <dt><kbd>Y</kbd> <kbd>T</kbd></dt><dd>Yield; retry</dd>
        <dt><kbd>C</kbd> <kbd>Delete</kbd></dt><dd>Cancel; remove</dd>
        <dt><kbd>Ctrl</kbd> <kbd>Z</kbd></dt><dd>Undo the last move</dd>
        </dl><form method="dialog"><button>Close</button></form>
        """
}
