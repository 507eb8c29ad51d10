import ScriptedHTTP

/// The responses of a server to one request in ``ResourceSizeTests``. The server speaks *Resumable Uploads for HTTP* (interop version 10).
struct ResourceSizeServer {
    private static let version = "Upload-Draft-Interop-Version: 10"
    private static let empty = "Content-Length: 0"

    private let request: ReceivedRequest
    /// The number of the request. If the request creates an upload, the upload's URL contains the number.
    private let id: Int
    /// Whether the request completes the upload.
    private let completes: Bool
    /// Whether the request has more than 1 MiB of content. The server does not read such content.
    private let isLarge: Bool

    init(_ request: ReceivedRequest, _ id: Int) {
        self.request = request
        self.id = id
        completes = request.headers["upload-complete"] == "?1"
        isLarge = request.contentLength > 1 << 20
    }

    /// Returns the steps of a server that stores small files, and reports a number in one field.
    func steps(_ field: ResourceSizeTests.Field, _ number: Int64) -> [ServerStep] {
        let complete = respond(200, "Upload-Complete: ?1", Self.empty)
        switch (request.method, field) {
        case ("OPTIONS", .maximumAppendSize): return options("Upload-Limit: max-append-size=\(number)")
        case ("OPTIONS", .minimumAppendSize): return options("Upload-Limit: max-append-size=2, min-append-size=\(number)")
        case ("OPTIONS", _): return options()

        case ("POST", .interimOffset): return interim(location, "Upload-Offset: \(number)") + content + complete
        case ("POST", .maximumSize): return interim(location, "Upload-Limit: max-size=\(number)") + content + complete
        case ("POST", .minimumSize): return interim(location, "Upload-Limit: min-size=\(number)") + content + complete
        case ("POST", .creationOffset): return content + created("Upload-Offset: \(number)")
        case ("POST", .headOffset), ("POST", .headLength): return content + created()
        case ("POST", .maximumAge): return content + created("Upload-Offset: 0", "Upload-Limit: max-age=\(number)")
        case ("POST", .contentLength):
            // The connection closes before the announced content of the response.
            let end: [ServerStep] = number > 0 ? [.close] : []
            return content + respond(200, "Upload-Complete: ?1", "Content-Length: \(number)") + end
        case ("POST", .contentRange):
            return content + respond(200, "Upload-Complete: ?1", Self.empty, "Content-Range: bytes 0-\(number)/\(number)")
        case ("POST", .maximumAppendSize) where completes, ("POST", .minimumAppendSize) where completes: return content + complete
        case ("POST", _): return content + created("Upload-Offset: 0")

        case ("HEAD", .headOffset): return state("Upload-Offset: \(number)")
        case ("HEAD", .headLength): return state("Upload-Offset: 0", "Upload-Length: \(number)")
        case ("HEAD", _): return state("Upload-Offset: 0")

        case ("PATCH", .patchOffset): return content + state("Upload-Offset: \(number)")
        case ("PATCH", .conflictOffset): return content + respond(409, "Upload-Complete: ?0", "Upload-Offset: \(number)", Self.empty)
        case ("PATCH", .expectedOffset): return content + conflict(number)
        case ("PATCH", .maximumAge): return content + respond(422, Self.empty)
        case ("PATCH", _): return content + (completes ? complete : state("Upload-Offset: \(offset + request.contentLength)"))

        default: return respond(204)
        }
    }

    /// Returns the steps of a server that stores only empty files.
    func steps(_ response: ResourceSizeTests.Response, _ largestInteger: Int64) -> [ServerStep] {
        switch (request.method, response) {
        case ("OPTIONS", .largeMinimum): return options("Upload-Limit: min-size=\(largestInteger)")
        case ("OPTIONS", .smallAppends): return options("Upload-Limit: max-append-size=0")
        case ("OPTIONS", .largeAppends):
            return options("Upload-Limit: max-append-size=\(largestInteger), min-append-size=\(largestInteger)")
        case ("OPTIONS", _): return options()

        case ("POST", .smallMaximum): return interim("Upload-Limit: max-size=1") + content + respond(413, Self.empty)
        case ("POST", .hugeOffset): return content + created("Upload-Offset: \(Int64.max)")
        case ("POST", .hugeLength): return content + created()
        case ("POST", .hugeContentLength):
            let end: [ServerStep] = isLarge ? [] : [.close]
            return content + respond(200, "Upload-Complete: ?1", "Content-Length: \(Int64.max)") + end
        case ("POST", _): return content + created("Upload-Offset: 0", "Upload-Limit: max-age=\(largestInteger)")

        case ("HEAD", .hugeLength): return state("Upload-Offset: 0", "Upload-Length: \(Int64.max)")
        case ("HEAD", _): return state("Upload-Offset: 0")

        case ("PATCH", .hugeConflict): return content + conflict(.max, "Upload-Offset: \(Int64.max)")
        case ("PATCH", _):
            return content + (request.contentLength == 0 ? respond(200, "Upload-Complete: ?1", Self.empty) : respond(422, Self.empty))

        default: return respond(204)
        }
    }

    private var location: String { "Location: \(request.path)\(id)" }
    private var offset: Int { request.headers["upload-offset"].flatMap { Int($0) } ?? 0 }

    /// Reads the content of the request, unless it is large.
    private var content: [ServerStep] {
        guard !isLarge else { return [] }
        let expected: [ServerStep] = request.headers["expect"] == nil ? [] : [.raw("HTTP/1.1 100 Continue\r\n\r\n")]
        return expected + [.read(nil)]
    }

    private func interim(_ lines: String...) -> [ServerStep] { [text(104, lines)] }

    /// A final response. If the request is large, the server then closes the connection. `Connection: close` makes the client stop sending,
    /// even if the client did not wait for the response.
    private func respond(_ status: Int, _ lines: String...) -> [ServerStep] { respond(status, lines: lines) }

    private func respond(_ status: Int, lines: [String]) -> [ServerStep] {
        if isLarge { return [text(status, lines + ["Connection: close"]), .close] }
        return [text(status, lines)]
    }

    private func options(_ lines: String...) -> [ServerStep] { respond(204, lines: ["Accept-Patch: application/partial-upload"] + lines) }

    private func created(_ lines: String...) -> [ServerStep] { respond(201, lines: [location, "Upload-Complete: ?0", Self.empty] + lines) }

    /// A response with the state of an upload that is not complete.
    private func state(_ lines: String...) -> [ServerStep] { respond(204, lines: ["Upload-Complete: ?0"] + lines) }

    /// A rejection whose problem document contains the server's offset.
    private func conflict(_ offset: Int64, _ lines: String...) -> [ServerStep] {
        let type = "https://iana.org/assignments/http-problem-types#mismatching-upload-offset"
        let document = #"{"type":"\#(type)","expected-offset":\#(offset)}"#
        let headers = ["Upload-Complete: ?0", "Content-Type: application/problem+json", "Content-Length: \(document.utf8.count)"] + lines
        if isLarge { return [text(409, headers + ["Connection: close"]), .raw(document), .close] }
        return [text(409, headers), .raw(document)]
    }

    private func text(_ status: Int, _ lines: [String]) -> ServerStep {
        .raw((["HTTP/1.1 \(status) Scripted", Self.version] + lines + ["", ""]).joined(separator: "\r\n"))
    }
}
