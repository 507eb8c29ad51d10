import Foundation
import TransferControl
import TransferCore
import TransferKit
import TransferOutput

/// Responds to requests for the web page, for the parts of the web page that the script replaces, and for the forms.
struct PageRouter: Sendable {
    let queue: any ControllableQueue
    let feed: EventFeed
    let api: APIRouter

    /// Returns the response to a request from a client with access.
    ///
    /// - Throws: A ``Problem``, or an error of the queue.
    @concurrent
    func response(to request: WebRequest, _ body: BodyReader, _ client: Admission.Client, _ admission: Admission) async throws
        -> WebResponse
    {
        switch (request.path, request.method) {
        case ("/", "GET"), ("/", "HEAD"): return try await document(request, client, admission)
        case ("/parts", "GET"): return try await parts(request, client, admission)
        case ("/forms", "POST"): return try await form(request, body, client, admission)
        case ("/logout", "POST"):
            try Self.check(try await Self.fields(request, body), client, admission)
            var response = Self.signIn(200)
            response.headers.append(admission.expiredCookie)
            return response
        case ("/", _): throw Problem.methodNotAllowed(["GET", "HEAD"])
        case ("/parts", _): throw Problem.methodNotAllowed(["GET"])
        case ("/forms", _), ("/logout", _): throw Problem.methodNotAllowed(["POST"])
        default: throw Problem.notFound(request.path)
        }
    }

    // MARK: Signing in

    /// Signs in a user: exchanges a token for a cookie, and sends the browser to the page.
    @concurrent
    func login(_ request: WebRequest, _ body: BodyReader, _ admission: Admission) async throws -> WebResponse {
        let token: String?
        switch request.method {
        case "GET": token = request.parameter("token")
        case "POST": token = try await Self.fields(request, body).first { $0.name == "token" }?.value
        default: throw Problem.methodNotAllowed(["GET", "POST"])
        }
        guard let token, !token.isEmpty else { return Self.signIn(200) }
        guard let cookie = admission.cookie(for: token.trimmingCharacters(in: .whitespaces)) else {
            return Self.signIn(401, "The token is not valid.")
        }
        var response = WebResponse(303, headers: [("Location", "/")])
        response.headers.append(cookie)
        return response
    }

    /// The page for clients without a valid token or cookie.
    static func signIn(_ status: Int, _ message: String? = nil) -> WebResponse {
        let html: HTML = """
            \(PageDocument.head)<body class="sign-in"><main><h1><img src="/icon.svg" alt="" width="28" height="28"> transferq</h1>
            \(message.map { "<p class=\"notice\" role=\"alert\">\($0)</p>" as HTML })
            <form method="post" action="/login" class="fields"><label class="wide">Token <input name="token" type="password" autocomplete="off" required></label>
            <p class="hint wide">Open the URL that <code>transferq web</code> printed, or enter the content of \(AccessTokens.fileName) in the storage folder of the queue.
            If you have just opened the URL, <a href="/">continue to the page</a>.</p>
            <button>Sign in</button></form></main></body></html>
            """
        return WebResponse(status, "text/html; charset=utf-8", html.markup)
    }

    // MARK: The page

    private func document(_ request: WebRequest, _ client: Admission.Client, _ admission: Admission) async throws -> WebResponse {
        do {
            return Self.page(try await state(request, client, admission), 200)
        } catch let error as QueueError where Problem(error).status == 503 {
            return Self.unreachable(error)
        } catch let error as QueueError where error.code == .noSuchSession {
            var state = try await self.state(request, client, admission, showsDetail: false)
            state.message = error.message
            return Self.page(state, 404)
        }
    }

    private static func page(_ state: PageState, _ status: Int) -> WebResponse {
        WebResponse(status, "text/html; charset=utf-8", PageDocument(state: state).html.markup)
    }

    private static func unreachable(_ error: QueueError) -> WebResponse {
        let advice: HTML =
            error.code == .ownerUnreachable
            ? "<p>No process runs this queue. Start one, and then reload the page:</p><pre>transferq agent start</pre>" : ""
        let html: HTML = """
            \(PageDocument.head)<body class="sign-in"><main><h1><img src="/icon.svg" alt="" width="28" height="28"> transferq</h1>
            <p class="notice" role="alert">\(error.message)</p>\(advice)<p><a class="button" href="/">Reload</a></p></main></body></html>
            """
        return WebResponse(503, "text/html; charset=utf-8", html.markup)
    }

    /// The parts of the page that the script replaces after an event.
    private func parts(_ request: WebRequest, _ client: Admission.Client, _ admission: Admission) async throws -> WebResponse {
        let state = try await self.state(request, client, admission)
        let panels = StatusPanels(state: state)
        let list = SessionList(state: state)
        return WebResponse([
            "rows": .string(list.rows.markup), "pager": .string(state.filter.isActive ? list.pager.markup : ""),
            "status": .string(panels.summary.markup),
            "accounts": .string(panels.accounts.markup), "log": .string(panels.log.markup),
            "detail": state.detail.map { .string(SessionDetailPanel(detail: $0, state: state).html.markup) } ?? .null,
            "total": JSONValue(state.filter.isActive ? -1 : state.status.sessions),
        ])
    }

    private func state(
        _ request: WebRequest, _ client: Admission.Client, _ admission: Admission, showsDetail: Bool = true
    ) async throws -> PageState {
        let view = PageState.View(rawValue: request.parameter("view") ?? "") ?? .queue
        let filter = try SessionFilter(request, states: view.states)
        let overview = try await api.snapshots.value(for: "overview") { [queue] in
            let status = try await queue.status()
            return Overview(status: status, statistics: try await queue.statistics(), accounts: try await queue.accounts())
        }
        // Read the order first. If the order changes in between, a move with the older revision fails instead of using a wrong index.
        let (order, page) = try await api.snapshots.value(for: "page \(filter.key)") { [queue, scanLimit = api.scanLimit] in
            (try await queue.status().orderRevision, try await filter.page(of: queue, scanning: scanLimit))
        }
        let events = await feed.recent(100)
        // The log and the reasons for waiting also name sessions that the page does not list.
        let named = Set(events.compactMap(\.event.session) + page.sessions.compactMap { $0.why?.session ?? $0.dependency?.session })
        let names = try await api.snapshots.value(for: "names \(filter.key) \(events.last?.number ?? 0)") { [queue] in
            let sessions = try await queue.sessions(in: .sessions(Array(named)))
            return Dictionary(sessions.map { ($0.id, $0.name) }) { $1 }
        }
        var state = PageState(
            client: client, formToken: admission.tokens.formToken(for: client.access), view: view, filter: filter, order: order,
            status: overview.status,
            statistics: overview.statistics, accounts: overview.accounts, page: page, events: events, names: names)
        if showsDetail, let text = request.parameter("session") {
            let position = try APIRouter.integer(request, "items", in: 0 ... .max) ?? 0
            state.detail = try await SessionDetail(try APIRouter.session(text), from: position, in: queue)
        }
        return state
    }

    // MARK: Forms

    /// Performs the action of a form, and sends the browser back to the page. The script gets JSON instead.
    @concurrent
    private func form(_ request: WebRequest, _ body: BodyReader, _ client: Admission.Client, _ admission: Admission) async throws
        -> WebResponse
    {
        try admission.checkChange(by: client)
        let fields = try await Self.fields(request, body)
        try Self.check(fields, client, admission)
        let wantsJSON = request["Accept"]?.hasPrefix("application/json") ?? false
        let action = FormAction(fields)
        if action.needsConfirmation, !wantsJSON { return Self.confirmation(action) }
        do {
            let result = try await action.perform(api)
            if wantsJSON { return result }
            return WebResponse(303, headers: [("Location", "/")])
        } catch {
            let problem = Problem(error)
            if wantsJSON { throw problem }
            var state = try await self.state(request, client, admission, showsDetail: false)
            state.message = problem.detail
            return Self.page(state, problem.status)
        }
    }

    private static func confirmation(_ action: FormAction) -> WebResponse {
        let html: HTML = """
            \(PageDocument.head)<body class="sign-in"><main><h1>Remove \(Figures.count(action.ids.count, "session"))?</h1>
            <p>Source files and completed files at the destination stay.</p>
            <form method="post" action="/forms" class="fields">\(HTML.joined(action.fields.map { "<input type=\"hidden\" name=\"\($0.name)\" value=\"\($0.value)\">" as HTML }))
            <input type="hidden" name="confirm" value="yes"><button class="danger">Remove</button> <a class="button quiet" href="/">Keep</a></form></main></body></html>
            """
        return WebResponse(200, "text/html; charset=utf-8", html.markup)
    }

    @concurrent
    private static func fields(_ request: WebRequest, _ body: BodyReader) async throws(Problem) -> [(name: String, value: String)] {
        guard request.mediaType == "application/x-www-form-urlencoded" else {
            throw Problem(415, "unsupportedMediaType", "The request must have the type application/x-www-form-urlencoded.")
        }
        return WebRequest.parameters(String(decoding: try await body.read(), as: UTF8.self))
    }

    /// Checks that the form is from this server's page. Throws a ``Problem`` otherwise.
    private static func check(
        _ fields: [(name: String, value: String)], _ client: Admission.Client, _ admission: Admission
    ) throws(Problem) {
        guard let token = fields.first(where: { $0.name == "form" })?.value, admission.isFormToken(token, for: client.access) else {
            throw Problem(403, "foreignForm", "The form is not from this page, or the page is too old. Reload the page.")
        }
    }
}

/// The state of the whole queue.
private struct Overview: Sendable {
    let status: QueueStatus
    let statistics: QueueStatistics
    let accounts: [AccountStatus]
}
