import CurlEngine
import Foundation
import TransferCore

extension TUSServer {
    /// Asks what the server can do (tus 1.0.0, "OPTIONS").
    func options() async throws -> EndpointReport {
        let answer = try await translating(.options) { try await send(.options, to: address) }
        guard answer.isSuccess, answer.isFromTUSServer || answer.response.headers["Tus-Version"] != nil else { throw answer.failure() }
        let headers = answer.response.headers
        let versions = list(headers["Tus-Version"] ?? Self.version)
        guard versions.contains(Self.version) else {
            throw TransferError(
                .permanent, .unsupportedVersion,
                "The server \(origin) speaks tus \(versions.joined(separator: ", ")); this transport speaks \(Self.version).")
        }
        return EndpointReport(
            version: Self.version, features: list(headers["Tus-Extension"] ?? ""),
            maximumSize: headers["Tus-Max-Size"].flatMap { Int64($0) }, latency: answer.latency)
    }

    /// Creates an upload (tus 1.0.0, "Creation").
    ///
    /// - Returns: Its absolute URL.
    func create(length: Int64, metadata: UploadMetadata) async throws -> String {
        var address = address
        for _ in 0..<5 {
            let answer = try await translating(.create) {
                try await send(
                    .create, to: address, headers: ["Upload-Length": "\(length)", "Upload-Metadata": metadata.headerValue], body: .bytes([])
                )
            }
            let location = answer.response.headers["Location"].flatMap { resolve($0, against: answer.response.effectiveURL) }
            if let location, origin.scheme == "https", Origin(location)?.scheme != "https" {
                throw TransferError(
                    .permanent, .badAnswer,
                    "The server \(origin) wants the content sent without TLS, to an http address. Behind a proxy, let it know of https (X-Forwarded-Proto)."
                )
            }
            if answer.isSuccess, let location { return location.absoluteString }
            // Only these two keep the method (RFC 9110, section 15.4), and another origin is not ours to trust.
            guard answer.status == 307 || answer.status == 308, let location, Origin(location) == origin else {
                throw try await refused(answer)
            }
            address = location.absoluteString
        }
        throw TransferError(.unreachable, .notThisProtocol, "The server \(origin) redirects in circles; check the address.")
    }

    /// Asks how much of an upload the server has (tus 1.0.0, "HEAD").
    ///
    /// - Throws: Also a ``TransferError`` of the class ``FailureClass/resumeLost`` if the upload is not of this length.
    func offset(of url: String, length: Int64) async throws -> Int64 {
        let answer = try await translating(.head) { try await send(.head, to: url) }
        guard answer.isSuccess, let offset = answer.offset else { throw try await refused(answer) }
        if let theirs = answer.length, theirs != length {
            throw TransferError(
                .resumeLost, .uploadGone, "The server \(origin) has an upload of \(theirs) bytes where one of \(length) was begun.")
        }
        guard offset <= length else {
            throw TransferError(
                .resumeLost, .uploadGone, "The server \(origin) claims to have \(offset) bytes of an upload of \(length).")
        }
        return offset
    }

    /// Removes an upload (tus 1.0.0, "Termination").
    func delete(_ url: String) async throws {
        let answer = try await translating(.delete) { try await send(.delete, to: url) }
        if answer.isSuccess || answer.status == 404 || answer.status == 410 { return }
        throw try await refused(answer)
    }

    /// The error for an answer; asks for the versions that the server speaks if that is the trouble and it did not say.
    func refused(_ answer: TUSAnswer) async throws -> TransferError {
        guard answer.status == 412, answer.response.headers["Tus-Version"] == nil else { return answer.failure() }
        let options = try? await send(.options, to: address)
        try Task.checkCancellation()
        return answer.failure(versions: options?.response.headers["Tus-Version"])
    }

    private func translating(_ request: TUSRequest, _ body: () async throws -> TUSAnswer) async throws -> TUSAnswer {
        do {
            return try await body()
        } catch let error as CurlEngineError {
            throw error.transferError(request, at: origin)
        }
    }

    private func resolve(_ location: String, against base: String) -> URL? {
        guard let url = URL(string: location, relativeTo: URL(string: base))?.absoluteURL, Origin(url) != nil else { return nil }
        return url
    }

    private func list(_ text: String) -> [String] {
        text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }
}
