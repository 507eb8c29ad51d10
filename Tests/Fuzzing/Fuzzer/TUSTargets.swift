import Foundation
import TransferCore
import TransportSupport

@testable import CurlEngine
@testable import HTTPSupport
@testable import TransportTUS

/// Targets for the responses of tus servers, and for the stored state of uploads.
enum TUSTargets {
    private static let profiles = ServerProfileCache(now: { .now })

    /// A tus server. ``ResourceTargets`` changes the protocol of a copy.
    static let server = try? TUSServer(
        Endpoint(transport: .tus, address: "https://example.com/files/"), credentials: NoCredentials(),
        resources: TransportResources(
            client: ClientResources(disks: DiskThreads(limit: 1), hook: nil), profiles: profiles, dialect: .tus))

    /// The input is a response, in the same form as for ``HTTPTargets/responses(_:)``. The target parses it as the response to each kind of
    /// request.
    static func responses(_ input: [UInt8]) {
        guard let response = HTTPTargets.response(input), let server else { return }
        if let features = TUSFeatures(response.headers, in: .tus) {
            require(features.maximumSize ?? 0 >= 0, "A size is not negative.")
            _ = (features.offers(.creation), ChecksumAlgorithm.best(of: features.checksumAlgorithms))
        }
        for request in [TUSRequest.options, .create, .head, .patch, .delete, .get] {
            let parsed = TUSResponse(
                request, HTTPTargets.endpointResponse(response, to: request.rawValue, from: server.origin), server: server)
            require(parsed.offset ?? 0 >= 0 && parsed.length ?? 0 >= 0, "An offset or length is not negative.")
            _ = (parsed.isSuccess, parsed.expires, parsed.serverTime, parsed.location, parsed.refusesCertificate)
            require(parsed.failure().retryAfter ?? .zero >= .zero, "A wait is not negative.")
        }
    }

    /// The input is the file's size in eight bytes, and a stored checkpoint.
    static func checkpoint(_ input: [UInt8]) {
        var reader = InputReader(input)
        let size = min(max(0, reader.number()), 1 << 56)
        guard let checkpoint = TUSCheckpoint(Checkpoint(data: Data(reader.rest), confirmed: size)) else { return }
        _ = (checkpoint.confirmed, checkpoint.unverified, checkpoint.uncounted, checkpoint.urls, checkpoint.whole.possiblyUncounted?.offset)
        require(Set(checkpoint.ownURLs).isSubset(of: checkpoint.urls), "The URLs of a checkpoint include the URLs of its own uploads.")
        if let name = checkpoint.whole.dialect, let dialect = Dialect(storedName: name) {
            require(dialect.ietf != nil && dialect.storedName == name, "Each stored name belongs to one version of the IETF protocol.")
        }
        guard let again = try? checkpoint.encoded(atMost: size) else { return require(false, "A decoded checkpoint can be encoded.") }
        require(again.confirmed <= size, "A checkpoint covers at most the whole file.")
        let second = TUSCheckpoint(again)
        require(second?.urls == checkpoint.urls, "Encoding keeps the URLs.")
        require(second?.confirmed == checkpoint.confirmed, "Encoding keeps the number of confirmed bytes.")
        require(second?.ownURLs == checkpoint.ownURLs, "Encoding keeps whether the app supplied the upload.")
        require(
            second?.whole.dialect == checkpoint.whole.dialect && second?.whole.mayBeComplete == checkpoint.whole.mayBeComplete,
            "Encoding keeps the version, and whether the upload may be complete.")
        for lostRequest in [checkpoint.whole.uncountedRequest, checkpoint.whole.unanswered] {
            ChunkPlan(configuredSize: checkpoint.chunkLimit, multiple: 1, profiles: profiles, address: "a").learn(
                from: lostRequest, at: size)
        }
    }
}

private struct NoCredentials: CredentialProvider {
    func secret(for reference: CredentialReference) async throws -> Secret { throw CancellationError() }
}
