import CurlEngine
import HTTPSupport
import TransferCore
import TransportSupport

extension TUSServer {
    /// Returns whether trailers arrive at the server. Over HTTP/1.1, proxies such as nginx drop trailers. A server that announces checksums
    /// then compares none, and reports no error.
    ///
    /// To find out, this method sends a request without content and with a wrong checksum as the trailer. A server that receives the
    /// trailer rejects the request (tus 1.0.0, "Checksum").
    ///
    /// - Parameters:
    ///   - url: An upload on the server.
    ///   - offset: The server's offset of the upload.
    ///   - algorithm: A checksum algorithm that the server supports.
    func trailersArrive(at url: String, _ offset: Int64, _ algorithm: ChecksumAlgorithm) async throws -> Bool {
        // Another endpoint may reach the same server by a different route.
        let route = [client.endpointAddress, address, "\(client.origin(of: url))"].joined(separator: " ")
        return try await profiles.trailersArrive(by: route) {
            try await withThrowingTaskGroup(of: Bool?.self) { group in
                group.addTask { try await tryTrailers(at: url, offset, algorithm) }
                // A server that can't parse the request may never respond.
                group.addTask {
                    try await Task.sleep(for: Self.responseTimeLimit)
                    return false
                }
                defer { group.cancelAll() }
                return try await group.next() ?? nil
            }
        }
    }

    /// Sends the request with the wrong checksum.
    ///
    /// - Returns: Whether trailers arrive; nil if the response is inconclusive.
    private func tryTrailers(at url: String, _ offset: Int64, _ algorithm: ChecksumAlgorithm) async throws -> Bool? {
        var other = RunningChecksum(algorithm)
        unsafe [0 as UInt8].withUnsafeBytes { unsafe other.update($0) }
        let headers: HTTPHeaders = [dialect.offsetHeader: "\(offset)", "Content-Type": dialect.patchContentType]
        let tusResponse: TUSResponse
        do {
            tusResponse = try await send(.patch, to: url, headers: headers, body: .bytes([]), trailer: other)
        } catch let error as CurlEngineError {
            guard error.cannotHaveArrived || error.kind == .shutDown else { return false }
            throw client.transferError(error, at: url, isEndpoint: false)
        }
        switch tusResponse.status {
        case dialect.checksumMismatch: return true
        case 200..<300, 400, 411, 501: return false
        default:
            let failure = tusResponse.failure()
            if failure.asksToBackOff { throw failure }
            // The next request shows what this status means for the upload.
            return nil
        }
    }
}
