extension HTTPRequest {
    /// Rejects requests that can't be sent, and values that could insert another header or request into the connection.
    ///
    /// - Throws: An error of the kind ``CurlEngineError/Kind/invalidRequest``.
    func validate() throws(CurlEngineError) {
        guard !method.isEmpty, method.utf8.allSatisfy(isTokenByte) else {
            throw CurlEngineError(.invalidRequest, "The HTTP method is empty or contains an invalid character.")
        }
        guard !url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
            throw CurlEngineError(.invalidRequest, "The URL of a request has a space or a control character.")
        }
        try headers.validate()
        try connection.validate()
        guard body.hasSupportedBodies else {
            throw CurlEngineError(.invalidRequest, "A sequence of bodies must not contain a stream or `none`.")
        }
        if observeBody != nil, !body.isFile {
            throw CurlEngineError(.invalidRequest, "`observeBody` requires a file as the body.")
        }
        if trailers != nil, body.isNone || connection.httpVersion != .http1 {
            throw CurlEngineError(.invalidRequest, "Trailers require a body and HTTP/1.1.")
        }
    }
}

extension HTTPBody {
    fileprivate var isFile: Bool {
        if case .file = self { true } else { false }
    }

    /// Whether the bodies of a sequence can be sent: none of them may be a stream or ``HTTPBody/none``. True for any other body.
    fileprivate var hasSupportedBodies: Bool {
        guard case .sequence(let bodies) = self else { return true }
        return bodies.allSatisfy { body in
            switch body {
            case .bytes, .file: true
            case .sequence: body.hasSupportedBodies
            case .none, .stream: false
            }
        }
    }
}

extension HTTPHeaders {
    func validate() throws(CurlEngineError) {
        for header in self {
            guard !header.name.isEmpty, header.name.utf8.allSatisfy(isTokenByte) else {
                throw CurlEngineError(
                    .invalidRequest, "The header name \(header.name.debugDescription) is empty or contains an invalid character.")
            }
            guard !header.value.utf8.contains(where: { $0 == 0x0D || $0 == 0x0A || $0 == 0 }) else {
                throw CurlEngineError(.invalidRequest, "The value of the header \(header.name) contains a line break or a NUL; remove it.")
            }
        }
    }
}

/// Returns whether a byte can occur in a token, such as a method or a header name (RFC 9110, section 5.6.2).
private func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
}
