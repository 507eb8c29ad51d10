import CurlEngine
import HTTPSupport
import TransferCore

extension TUSServer {
    /// Whether the server gets what is sent behind a body: proxies such as nginx drop it where they speak HTTP/1.1, and a server that offers to
    /// compare it then compares nothing, without a word.
    ///
    /// Tried with a request of no content, and with the checksum of something else behind it: who gets that refuses it (tus 1.0.0, "Checksum").
    ///
    /// - Parameters:
    ///   - url: An upload at the server.
    ///   - offset: Where it stands.
    func trailersArrive(at url: String, _ offset: Int64, _ algorithm: ChecksumAlgorithm) async throws -> Bool {
        // Another account, or endpoint, may go another way to the same server.
        let way = [client.account, address, "\(client.origin(of: url))"].joined(separator: " ")
        return try await memory.trailersArrive(by: way) {
            try await withThrowingTaskGroup(of: Bool?.self) { group in
                group.addTask { try await tryTrailers(at: url, offset, algorithm) }
                // Who can't make sense of it may be silent.
                group.addTask {
                    try await Task.sleep(for: Self.patience)
                    return false
                }
                defer { group.cancelAll() }
                return try await group.next() ?? nil
            }
        }
    }

    /// - Returns: Nil if the answer does not tell.
    private func tryTrailers(at url: String, _ offset: Int64, _ algorithm: ChecksumAlgorithm) async throws -> Bool? {
        var other = ContentHash(algorithm)
        unsafe [0 as UInt8].withUnsafeBytes { unsafe other.update($0) }
        let headers: HTTPHeaders = [dialect.offsetHeader: "\(offset)", "Content-Type": dialect.patchContentType]
        let answer: TUSAnswer
        do {
            answer = try await send(.patch, to: url, headers: headers, body: .bytes([]), trailer: other)
        } catch let error as CurlEngineError {
            guard error.neverArrived else { return false }
            throw client.transferError(error, at: url, isEndpoint: false)
        }
        switch answer.status {
        case dialect.checksumMismatch: return true
        case 200..<300, 400, 411, 501: return false
        default:
            let failure = answer.failure()
            if failure.wantsPeace { throw failure }
            // What that means to the upload is found out with the next request.
            return nil
        }
    }
}
