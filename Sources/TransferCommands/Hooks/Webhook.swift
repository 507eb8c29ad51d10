import Crypto
import CurlEngine
import Foundation
import TransferCore

/// A URL that receives each event as a signed request. The headers and the signature follow Standard Webhooks (standardwebhooks.com).
struct Webhook: Sendable {
    private static let prefix = "whsec_"
    private static let timeout = Duration.seconds(30)

    private let url: String
    private let key: SymmetricKey
    private let engine: CurlEngine

    /// Creates a webhook; nil if the secret is shorter than 16 bytes or its base64 is invalid.
    ///
    /// - Parameters:
    ///   - url: The URL that receives the events.
    ///   - secret: The content of the secret file: any bytes, or `whsec_` followed by base64. Trailing spaces and line breaks are ignored.
    init?(_ url: String, secret: [UInt8]) {
        var key = Data(secret)
        while let last = key.last, [0x0A, 0x0D, 0x20].contains(last) { key.removeLast() }
        if let text = String(validating: key, as: UTF8.self), text.hasPrefix(Self.prefix) {
            guard let decoded = Data(base64Encoded: String(text.dropFirst(Self.prefix.count))) else { return nil }
            key = decoded
        }
        guard key.count >= 16 else { return nil }
        self.url = url
        self.key = SymmetricKey(data: key)
        var configuration = CurlEngine.Configuration()
        configuration.maximumResponseBody = 1_024
        engine = CurlEngine(configuration: configuration)
    }

    /// Sends an event.
    ///
    /// - Parameters:
    ///   - body: The event as JSON.
    ///   - id: The ID of the event, the same for each attempt, so that the server can recognize a repeated event.
    ///   - time: The current time, which the signature includes.
    /// - Returns: The reason why the server did not handle the event; nil after a response with a status from 200 to 299.
    func send(_ body: [UInt8], id: String, at time: Date) async -> String? {
        let timestamp = String(Int64(time.timeIntervalSince1970))
        let code = HMAC<SHA256>.authenticationCode(for: Data("\(id).\(timestamp).".utf8) + body, using: key)
        var headers: HTTPHeaders = ["Content-Type": "application/json"]
        headers.append("webhook-id", id)
        headers.append("webhook-timestamp", timestamp)
        headers.append("webhook-signature", "v1," + Data(code).base64EncodedString())
        let request = HTTPRequest(method: "POST", url: url, headers: headers, body: .bytes(body))
        // Messages contain only the URL's origin, because the path and the query of a webhook often contain a secret.
        let server = request.originForMessages
        do {
            let status = try await withThrowingTaskGroup(of: Int?.self) { group in
                group.addTask { [engine] in try await engine.perform(request).status }
                group.addTask {
                    try await Task.sleep(for: Self.timeout)
                    return nil
                }
                defer { group.cancelAll() }
                return try await group.next() ?? nil
            }
            guard let status else { return "\(server) did not respond within \(Self.timeout.components.seconds) s." }
            return (200..<300).contains(status) ? nil : "\(server) responded with the status \(status)."
        } catch {
            return "Cannot reach \(server): \(error)"
        }
    }
}
