import CurlEngine
import HTTPClient
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
        try await memory.trailersArrive(at: self.origin(of: url).description) {
            var other = ContentHash(algorithm)
            unsafe [0 as UInt8].withUnsafeBytes { unsafe other.update($0) }
            let headers: HTTPHeaders = [self.dialect.offsetHeader: "\(offset)", "Content-Type": self.dialect.patchContentType]
            let answer: TUSAnswer
            let start = self.memory.now()
            do {
                answer = try await self.send(.patch, to: url, headers: headers, body: .bytes([]), trailer: other)
            } catch let error as CurlEngineError {
                guard error.neverArrived else { return false }
                throw error.transferError(at: self.origin(of: url), by: self.settings.connection, isEndpoint: false)
            } catch let error as CancellationError {
                // A queue gives up what stalls by cancelling it.
                if self.memory.now() - start >= Self.patience { self.memory.noteTrailers(false, at: self.origin(of: url).description) }
                throw error
            }
            switch answer.status {
            case self.dialect.checksumMismatch: return true
            case 200..<300, 400, 411, 501: return false
            default:
                let failure = answer.failure()
                if failure.wantsPeace { throw failure }
                // What that means to the upload is found out with the next request.
                return nil
            }
        }
    }
}
