import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// The error for each status that a server may send, by request method.
@Suite struct StatusTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let status: Int
        let failureClass: FailureClass
        let code: TransferError.Code
        var testDescription: String { "\(status)" }

        init(_ status: Int, _ failureClass: FailureClass, _ code: TransferError.Code) {
            self.status = status
            self.failureClass = failureClass
            self.code = code
        }
    }

    /// Statuses after which a later attempt may succeed.
    static let busy: [Case] =
        [408, 423, 425, 429].map { Case($0, .transient, .serverError) }
        + [500, 599].map { Case($0, .transient, .serverError) } + [502, 503, 504].map { Case($0, .transient, .serverUnavailable) }
    /// Statuses with the same error for all methods.
    static let always: [Case] =
        busy + [
            Case(401, .credentials, .credentialsRejected), Case(407, .credentials, .credentialsRejected),
            Case(412, .permanent, .rejected), Case(507, .remoteFull, .remoteFull),
        ]

    static let creation: [Case] =
        always + [
            Case(204, .unreachable, .notThisProtocol), Case(301, .unreachable, .notThisProtocol), Case(302, .unreachable, .notThisProtocol),
            Case(303, .unreachable, .notThisProtocol), Case(307, .unreachable, .notThisProtocol), Case(308, .unreachable, .notThisProtocol),
            Case(400, .permanent, .rejected), Case(403, .credentials, .credentialsRejected), Case(404, .unreachable, .notThisProtocol),
            Case(405, .unreachable, .notThisProtocol), Case(409, .permanent, .rejected), Case(410, .unreachable, .notThisProtocol),
            Case(413, .permanent, .tooLarge), Case(415, .permanent, .rejected), Case(501, .unreachable, .notThisProtocol),
        ]

    @Test(arguments: creation) func classifiesStatusesOfPOST(_ expected: Case) async throws {
        let upload = try TestUpload(size: 10) { _, _ in [.tus(expected.status)] }
        let error = await upload.failure()
        #expect(error?.failureClass == expected.failureClass)
        #expect(error?.code == expected.code)
        #expect(upload.methods == ["POST"])
        await upload.end()
    }

    /// Redirects without a `Location`.
    static let redirects = [301, 302, 303, 307, 308].map { Case($0, .protocolViolation, .invalidResponse) }

    static let head: [Case] =
        always + redirects + [
            Case(204, .protocolViolation, .invalidResponse), Case(400, .permanent, .rejected), Case(403, .resumeLost, .uploadGone),
            Case(404, .resumeLost, .uploadGone),
            Case(405, .permanent, .rejected), Case(410, .resumeLost, .uploadGone), Case(501, .permanent, .rejected),
        ]

    @Test(arguments: head) func classifiesStatusesOfHEAD(_ expected: Case) async throws {
        let upload = try TestUpload(size: 10) { _, _ in [.tus(expected.status)] }
        let error = await upload.failure(from: try upload.checkpoint())
        #expect(error?.failureClass == expected.failureClass)
        #expect(error?.code == expected.code)
        #expect(upload.methods == ["HEAD"])
        await upload.end()
    }

    static let patch: [Case] =
        always + redirects + [
            Case(204, .protocolViolation, .invalidResponse), Case(400, .transient, .rejected), Case(403, .permanent, .forbidden),
            Case(404, .resumeLost, .uploadGone), Case(405, .permanent, .rejected),
            Case(409, .transient, .serverError), Case(410, .resumeLost, .uploadGone), Case(413, .permanent, .tooLarge),
            Case(415, .permanent, .rejected), Case(501, .permanent, .rejected),
        ]

    /// After each failed `PATCH`, the client reads the offset and stores it.
    @Test(arguments: patch) func classifiesStatusesOfPATCH(_ expected: Case) async throws {
        let upload = try TestUpload(size: 10) { request, _ in
            switch request.method {
            case "POST" where request.headers["x-http-method-override"] == nil: [.created]
            case "HEAD": [.offset(4)]
            default: [.tus(expected.status)]
            }
        }
        let error = await upload.failure()
        #expect(error?.failureClass == expected.failureClass)
        #expect(error?.code == expected.code)
        #expect(upload.recorder.checkpoints.last?.confirmed == 4)
        let again =
            switch expected.status {
            case 405, 501: ["POST", "HEAD"]
            case 409: ["PATCH", "HEAD"]
            default: [String]()
            }
        #expect(upload.methods == ["POST", "PATCH", "HEAD"] + again)
        await upload.end()
    }

    @Test func rejectsHTMLPage() async throws {
        let page: ServerStep = .answer(200, ["Content-Type": "text/html", "Location": "/login"], body: "<html>Log in</html>")
        let creation = try TestUpload(size: 10, answers: [[page]])
        #expect(await creation.failure()?.failureClass == .unreachable)
        await creation.end()
        let resume = try TestUpload(size: 10, answers: [[page]])
        #expect(await resume.failure(from: try resume.checkpoint())?.failureClass == .protocolViolation)
        await resume.end()
        // The server sends the page in response to a PATCH.
        let login = try TestUpload(size: 10, answers: [[.created], [page], [.offset(0)]])
        #expect(await login.failure()?.failureClass == .protocolViolation)
        #expect(login.methods == ["POST", "PATCH", "HEAD"])
        await login.end()
    }

    /// Apart from the missing version, the responses are valid.
    @Test func rejectsResponsesWithoutVersion() async throws {
        let resume = try TestUpload(size: 10, answers: [[.answer(200, ["Upload-Offset": "0"])], [.accepted(10)]])
        let unnamed = await resume.failure(from: try resume.checkpoint())
        #expect(unnamed?.failureClass == .protocolViolation && unnamed?.code == .invalidResponse)
        #expect(resume.methods == ["HEAD"])
        await resume.end()
        let patch = try TestUpload(size: 10, answers: [[.created], [.answer(204, ["Upload-Offset": "10"])], [.offset(0)]])
        let unconfirmed = await patch.failure()
        #expect(unconfirmed?.failureClass == .protocolViolation && unconfirmed?.code == .invalidResponse)
        #expect(patch.methods == ["POST", "PATCH", "HEAD"])
        #expect(patch.recorder.checkpoints.last?.confirmed == 0)
        await patch.end()
    }

    @Test func rejectsCreationWithoutLocation() async throws {
        let upload = try TestUpload(size: 10, answers: [[.tus(201)]])
        #expect(await upload.failure()?.failureClass == .unreachable)
        await upload.end()
    }

    @Test(arguments: ["ftp://127.0.0.1/1", "file:///etc/passwd", "http://"]) func rejectsInvalidLocations(location: String) async throws {
        let upload = try TestUpload(size: 10, answers: [[.tus(201, ["Location": location])]])
        #expect(await upload.failure()?.failureClass == .unreachable)
        await upload.end()
    }

    @Test func errorNamesVersionsOfServer() async throws {
        let named = try TestUpload(size: 10, answers: [[.answer(412, ["Tus-Version": "2.0.0,3.0.0"])]])
        let error = await named.failure()
        #expect(error?.code == .unsupportedVersion)
        #expect(error?.message.contains("2.0.0,3.0.0") == true)
        #expect(named.methods == ["POST"])
        await named.end()
        let unlisted = try TestUpload(size: 10, options: [.answer(204, ["Tus-Version": "0.2.2"])], answers: [[.answer(412)]])
        #expect(await unlisted.failure(from: try unlisted.checkpoint())?.message.contains("0.2.2") == true)
        #expect(unlisted.server.requests.map(\.method) == ["HEAD", "OPTIONS"])
        await unlisted.end()
        let otherVersion = try TestUpload(size: 10, answers: [[.answer(201, ["Tus-Resumable": "2.0.0", "Location": "/1"])]])
        #expect(await otherVersion.failure()?.code == .unsupportedVersion)
        await otherVersion.end()
    }

    /// The server supports the version of the client, so status 412 has a different cause.
    @Test(arguments: [["Tus-Version": "1.0.0,0.2.2"], ["Tus-Version": "0.2.2, 1.0.0"], ["Tus-Resumable": "1.0.0"], [:]])
    func reportsOtherCauseOf412IfVersionIsSupported(headers: [String: String]) async throws {
        let upload = try TestUpload(size: 10, options: [.answer(204, ["Tus-Version": "1.0.0"])], answers: [[.answer(412, headers)]])
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent)
        #expect(error?.code == .rejected)
        #expect(error?.message.contains("supports tus 1.0.0, but rejects the request with 412") == true)
        #expect(error?.message.contains("proxy") == true && error?.message.contains("If-Match") == true)
        #expect(upload.methods == ["POST"])
        await upload.end()
    }

    @Test func reportsUnreachableServer() async throws {
        var upload = try TestUpload(size: 10, answers: [])
        let closed = try ReservedPort()
        upload.endpoint = .tus(closed.url(), credentials: [])
        #expect(await upload.failure()?.failureClass == .unreachable)
        await upload.end()
    }

    @Test(
        arguments: [
            (["Retry-After": "7"], Duration.seconds(7)), (["Retry-After": "0"], .zero), (["Retry-After": "-5"], nil),
            (["Retry-After": "soon"], nil), (["Retry-After": "99999999999999999999"], .seconds(UInt32.max)),
            ([:], nil),
            (["Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:49:07 GMT"], .seconds(30)),
            (["Retry-After": "Thu, 01 Mar 2012 00:00:10 GMT", "Date": "Wed, 29 Feb 2012 23:59:50 GMT"], .seconds(20)),
            (["Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"], .zero), (["Retry-After": "Sun, 99 Nov 1994 08:49:37 GMT"], nil),
        ] as [([String: String], Duration?)])
    func readsRetryAfter(headers: [String: String], wait: Duration?) async throws {
        for status in [429, 503] {
            let upload = try TestUpload(size: 10, answers: [[.tus(status, headers)]])
            #expect(await upload.failure()?.retryAfter == wait)
            await upload.end()
        }
    }
}
