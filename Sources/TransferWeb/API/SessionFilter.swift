import TransferKit

/// The parameters of a request for a list of sessions: the filter and the page.
struct SessionFilter: Sendable {
    struct Page: Sendable {
        var sessions: [SessionStatus]
        /// The index at which the next page starts; nil at the end.
        var next: Int?
    }

    static let names = ["from", "limit", "state", "account", "tag", "name"]

    let start: Int
    let limit: Int
    /// The states of the listed sessions; empty for all.
    let states: Set<SessionState>
    /// Whether the request itself names states. If not, the preset states apply.
    let namesStates: Bool
    let account: String?
    let tag: String?
    /// The text that the names of the listed sessions contain, in lower case; nil for any name.
    let text: String?

    /// Parses the parameters of a request.
    ///
    /// - Parameter preset: The states if the request names none; empty for all.
    /// - Throws: A ``Problem`` for an invalid parameter.
    init(_ request: WebRequest, states preset: Set<SessionState> = []) throws(Problem) {
        start = Int(try APIRouter.integer(request, "from", in: 0...Int64(Int32.max)) ?? 0)
        limit = Int(try APIRouter.integer(request, "limit", in: 1...APIRouter.pageLimit) ?? 100)
        var states: Set<SessionState> = []
        for (name, value) in request.query where name == "state" && !value.isEmpty {
            for word in value.split(separator: ",") {
                guard let state = SessionState(rawValue: String(word)) else { throw .invalid("There is no state \"\(word)\".") }
                states.insert(state)
            }
        }
        namesStates = !states.isEmpty
        self.states = states.isEmpty ? preset : states
        (account, tag) = (request.parameter("account").flatMap(Self.value), request.parameter("tag").flatMap(Self.value))
        text = request.parameter("name").flatMap(Self.value)?.lowercased()
    }

    /// Returns a parameter's value; nil for a form field that the user left empty.
    private static func value(_ text: String) -> String? { text.isEmpty ? nil : text }

    /// A text that identifies the filter and the page.
    var key: String {
        "\([account, tag, text]) \(states.map(\.rawValue).sorted()) \(start) \(limit)"
    }

    var isActive: Bool { !states.isEmpty || hasCriteria }

    /// Whether the request itself, and not only the preset, limits the list.
    var hasCriteria: Bool { namesStates || account != nil || tag != nil || text != nil }

    /// Whether the list contains only drafts, which have no index in the queue.
    var listsDrafts: Bool { states == [.draft] }

    private func matches(_ session: SessionStatus) -> Bool {
        (states.isEmpty || states.contains(session.state)) && (account == nil || session.account == account)
            && (tag.map(session.tags.contains) ?? true) && (text.map { session.name.lowercased().contains($0) } ?? true)
    }

    /// - Parameter scanLimit: The maximum number of sessions to compare with the filter. At the maximum, the page ends, even if more sessions follow.
    func page(of queue: any ControllableQueue, scanning scanLimit: Int) async throws -> Page {
        if listsDrafts {
            let drafts = try await queue.sessions(in: .state(.draft)).filter(matches)
            return Page(sessions: Array(drafts.dropFirst(start).prefix(limit)), next: drafts.count > start + limit ? start + limit : nil)
        }
        guard isActive else {
            let found = try await queue.sessions(start..<start + limit + 1)
            return Page(sessions: Array(found.prefix(limit)), next: found.count > limit ? start + limit : nil)
        }
        var page = Page(sessions: [])
        let end = start + scanLimit
        var index = start
        while index < end {
            let count = min(2_048, end - index)
            let found = try await queue.sessions(index..<index + count)
            for session in found {
                index += 1
                guard matches(session) else { continue }
                page.sessions.append(session)
                if page.sessions.count == limit {
                    page.next = index
                    return page
                }
            }
            if found.count < count { return page }
        }
        page.next = index
        return page
    }
}
