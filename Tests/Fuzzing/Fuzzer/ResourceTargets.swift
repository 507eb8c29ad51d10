import TransferCore

@testable import CurlEngine
@testable import HTTPSupport
@testable import TransportTUS

/// Targets for responses in the IETF protocol *Resumable Uploads for HTTP*.
enum ResourceTargets {
    private static let profiles = ServerProfileCache(now: { .now })

    /// The file sizes for which the target checks limits.
    private static let sizes: [Int64] = [0, 1, 3, 1 << 31, RemoteUpload.sizes.upperBound]

    /// The smallest positive number that is too large for an integer of a structured field, which has at most 15 digits (RFC 9651, section
    /// 3.3.1).
    private static let endOfIntegers: Int64 = 1_000_000_000_000_000

    /// The first byte of the input selects a version of the protocol. The rest is a response, in the same form as for
    /// ``HTTPTargets/responses(_:)``. The target parses it as the response to each kind of request. Interim responses can precede this response.
    static func responses(_ input: [UInt8]) {
        guard var server = TUSTargets.server, let selector = input.first else { return }
        server.dialect = Dialect.ietfVersions[Int(selector) % Dialect.ietfVersions.count]
        let watch = InterimWatch(server.dialect)
        let parsed = HTTPTargets.response(Array(input.dropFirst())) {
            checkFields(of: $0.headers)
            watch.add($0, to: server.address)
        }
        watch.end()
        check(watch.current, from: server)
        guard let response = parsed else { return }
        checkFields(of: response.headers)
        for request in [TUSRequest.options, .create, .head, .patch, .delete] {
            let endpointResponse = HTTPTargets.endpointResponse(response, to: request.rawValue, from: server.origin)
            check(TUSResponse(request, endpointResponse, server: server), from: server)
        }
    }

    private static func check(_ report: InterimWatch.Report, from server: TUSServer) {
        require(report.offset ?? 0 >= 0, "An offset is not negative.")
        if let location = report.location {
            require(Origin(location) != nil && location.isSameResource(as: location), "The URL of an upload has an origin.")
            _ = try? server.checkUploadURL(location)
        }
        if let limits = report.limits { check(limits, of: server) }
    }

    private static func check(_ response: TUSResponse, from server: TUSServer) {
        let numbers = [response.offset, response.length, response.conflictOffset, response.problem?.expectedOffset]
        require(
            numbers.allSatisfy { (0...RemoteUpload.sizes.upperBound + 1).contains($0 ?? 0) },
            "An offset or length is not negative, and is at most one byte above the largest size.")
        require(response.conflictOffset == nil || response.status == 409, "Only a conflict reports the offset.")
        if let location = response.location { _ = try? server.checkUploadURL(location) }
        if let limits = response.limits { check(limits, of: server) }
        _ = (response.isSuccess, response.isComplete, response.expires, response.reportedDigest)
        _ = (response.isUnrelatedPage, response.isFromGateway)
        if let named = response.namedVersion(among: Dialect.ietfVersions) {
            require(named.ietf != nil && response.mayRejectVersion, "A rejection names a version of this protocol.")
        }
        let failures: [TransferError?] = [
            response.failure(), response.rejectionOfWholeFile, server.rejectedVersions(response), server.changeToTUS(response),
        ]
        for failure in failures.compactMap(\.self) {
            require(failure.message.utf8.last == UInt8(ascii: "."), "An error message ends with a full stop: \(failure.message)")
            require(failure.retryAfter ?? .zero >= .zero, "A wait is not negative.")
        }
    }

    private static func check(_ limits: UploadLimits, of server: TUSServer) {
        let numbers = [
            limits.maximumSize, limits.minimumSize, limits.maximumAppendSize, limits.minimumAppendSize, limits.maximumAge,
        ]
        require(numbers.allSatisfy { (0..<endOfIntegers).contains($0 ?? 0) }, "A limit is an integer that is not negative: \(limits)")
        var merged = UploadLimits()
        merged.update(with: limits)
        require(merged == limits, "Newer limits replace limits that are unknown.")
        let plan = ChunkPlan(configuredSize: nil, multiple: 1, limits: limits, profiles: profiles, address: server.address)
        for size in sizes {
            let count = plan.next(remaining: size)
            require((min(1, size)...size).contains(count), "A request sends at least one of the remaining bytes.")
            require(count <= max(1, limits.maximumAppendSize ?? .max), "A request is not larger than the server's limit.")
            do throws(TransferError) {
                try server.checkLimits(limits, of: size)
                require(size <= limits.maximumSize ?? .max && size >= limits.minimumSize ?? 0, "An accepted file is within the limits.")
            } catch {
                require(error.message.utf8.last == UInt8(ascii: "."), "An error message ends with a full stop: \(error.message)")
            }
        }
    }

    /// Parses the value of each header as a structured field, regardless of the header's name.
    private static func checkFields(of headers: HTTPHeaders) {
        for field in headers {
            var values = StructuredFields.dictionary(field.value).map { Array($0.values) } ?? []
            if let item = StructuredFields.item(field.value) { values.append(item) }
            for case .integer(let number) in values {
                require(abs(number) < endOfIntegers, "An integer has at most 15 digits.")
            }
        }
    }
}
