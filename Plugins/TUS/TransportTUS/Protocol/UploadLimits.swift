/// The limits of a server for an upload, from the header `Upload-Limit` (Resumable Uploads for HTTP, "Limits"). Each limit is nil if the server
/// does not report it.
package struct UploadLimits: Hashable, Sendable {
    /// The maximum size of the whole upload in bytes.
    package var maximumSize: Int64?
    /// The minimum size of the whole upload in bytes.
    package var minimumSize: Int64?
    /// The maximum number of bytes of one request.
    package var maximumAppendSize: Int64?
    /// The minimum number of bytes of one request. It does not apply to the request that completes the upload.
    package var minimumAppendSize: Int64?
    /// The remaining lifetime of the upload in seconds, from the time of the response.
    package var maximumAge: Int64?

    package init() {}

    /// Parses the value of the header; nil if it is not a dictionary, or if a known limit is not a number of bytes or seconds. Unknown keys are
    /// ignored.
    ///
    /// - Parameter ageKey: The key of the lifetime, which differs between versions.
    package init?(_ text: String, ageKey: String) {
        guard let values = StructuredFields.dictionary(text) else { return nil }
        let known: [(String, WritableKeyPath<UploadLimits, Int64?>)] = [
            ("max-size", \.maximumSize), ("min-size", \.minimumSize), ("max-append-size", \.maximumAppendSize),
            ("min-append-size", \.minimumAppendSize), (ageKey, \.maximumAge),
        ]
        for (key, limit) in known {
            switch values[key] {
            case nil: continue
            case .integer(let number)? where number >= 0: self[keyPath: limit] = number
            default: return nil
            }
        }
    }

    /// Replaces each limit for which newer limits have a value.
    package mutating func update(with newer: UploadLimits?) {
        guard let newer else { return }
        for limit: WritableKeyPath<UploadLimits, Int64?> in [
            \.maximumSize, \.minimumSize, \.maximumAppendSize, \.minimumAppendSize, \.maximumAge,
        ] {
            if let value = newer[keyPath: limit] { self[keyPath: limit] = value }
        }
    }
}
