import Foundation
import SystemPackage
import TransferCore
import TransferKit
import TransferOutput

/// A session with a page of its items.
struct SessionDetail: Sendable {
    let session: SessionStatus
    let items: [ItemStatus]
    /// The position of the first item of the next page; nil if this is the last page.
    let next: Int64?

    static let itemLimit = 50

    /// - Throws: A `QueueError` with the code `noSuchSession`, or another error of the queue.
    init(_ id: SessionID, from position: Int64, in queue: any ControllableQueue) async throws {
        session = try await queue.status(of: id)
        let found = try await queue.items(of: id, from: position, limit: Self.itemLimit + 1)
        items = Array(found.prefix(Self.itemLimit))
        next = found.count > Self.itemLimit ? found[Self.itemLimit].position : nil
    }
}

/// The details of a session, with the forms that change it.
struct SessionDetailPanel {
    let detail: SessionDetail
    let state: PageState

    private var session: SessionStatus { detail.session }

    var html: HTML {
        """
        <section class="panel detail" id="detail" aria-labelledby="dialog-title"><h2 id="dialog-title">\(session.name)</h2>
        <p><span class="badge" data-state="\(session.state.rawValue)">\(SessionRow.title(session))</span> \(session.why == nil ? "" : state.reason(of: session)) \(session.error?.message ?? "")</p>
        <dl class="facts">\(HTML.joined(facts.map { "<dt>\($0.0)</dt><dd>\($0.1)</dd>" as HTML }))</dl>
        \(state.canWrite ? forms : nil)
        <h3>Items</h3>\(items)
        <p class="close"><a class="button quiet" href="/">Close</a></p></section>
        """
    }

    private var facts: [(String, String)] {
        let statistics = session.statistics
        let optional: [(String, String?)] = [
            ("ID", session.id.description), ("Account", session.account), ("Endpoint", session.endpoint),
            ("Progress", SessionRow.figures(statistics, session.state)),
            ("Limit", session.rateLimit.map { Figures.rate(Double($0)) }), ("Attempts", "\(session.attempts)"),
            ("Tags", session.tags.isEmpty ? nil : session.tags.joined(separator: ", ")),
            ("Starts", session.notBefore.map(Figures.date)),
            ("After", session.dependency.map { state.names[$0.session] ?? $0.session.description }),
            ("Added", Figures.date(session.createdAt)), ("Started", session.startedAt.map(Figures.date)),
            ("Ended", session.endedAt.map(Figures.date)), ("Expected end", session.expectedEnd.map(Figures.date)),
        ]
        return optional.compactMap { name, value in value.map { (name, $0) } }
    }

    private var forms: HTML {
        let operations = session.state == .draft ? [("enqueue", "Enqueue"), ("remove", "Remove")] : SessionList.operations
        return """
            <form method="post" action="/forms" class="toolbar live"><input type="hidden" name="form" value="\(state.formToken)"><input type="hidden" name="id" value="\(session.id.description)">\
            \(HTML.joined(operations.map { "<button name=\"do\" value=\"\($0.0)\"\($0.0 == "remove" ? " class=\"danger\"" as HTML : "")>\($0.1)</button>" as HTML }))</form>
            <form method="post" action="/forms" class="fields live"><input type="hidden" name="form" value="\(state.formToken)"><input type="hidden" name="id" value="\(session.id.description)">
            <label>Name \(field("name", session.name))</label>
            <label>Tags \(field("tags", session.tags.joined(separator: ", "), placeholder: "separated by commas"))</label>
            <label>Rate limit \(field("rate", session.rateLimit.map { "\($0)" } ?? "", placeholder: "no limit"))</label>
            <button name="do" value="set">Save</button></form>
            """
    }

    /// A field, and a hidden field with its rendered value, so that the form changes only the fields that the user edited.
    private func field(_ name: String, _ value: String, placeholder: String? = nil) -> HTML {
        """
        <input name="\(name)" value="\(value)"\(placeholder.map { " placeholder=\"\($0)\"" as HTML })>\
        <input type="hidden" name="\(name)\(FormAction.renderedSuffix)" value="\(value)">
        """
    }

    private var items: HTML {
        guard !detail.items.isEmpty else { return "<p class=\"empty\">There are no items at this position.</p>" }
        let more: HTML? = detail.next.map { "<p><a href=\"/?session=\(session.id.description)&amp;items=\($0)\">More items</a></p>" }
        return "<ol class=\"items\" start=\"\(detail.items[0].position)\">\(HTML.joined(detail.items.map(item)))</ol>\(more)"
    }

    private func item(_ item: ItemStatus) -> HTML {
        let done = max(item.bytesDone, item.bytesSent)
        let amount = item.state == .completed ? Figures.size(item.bytesTotal) : "\(Figures.size(done)) of \(Figures.size(item.bytesTotal))"
        return """
            <li value="\(item.position)"><span class="name">\(item.source.string)</span> <span class="badge" data-state="\(item.state.rawValue)">\(item.state.rawValue)</span>\
            <span class="meta">\(amount)\(item.error.map { " · \($0.message)" as HTML })\(item.warnings.isEmpty ? nil : " · \(item.warnings.joined(separator: " "))" as HTML)</span></li>
            """
    }
}
