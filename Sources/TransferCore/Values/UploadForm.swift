/// A form to upload: text fields and files that are sent in one request, in this order.
public struct UploadForm: Hashable, Sendable {
    /// A part of a form.
    public enum Part: Hashable, Sendable {
        /// A text field. The value is sent unchanged.
        case field(name: String, value: String)
        /// A file.
        case file(File)
    }

    /// A file of a form.
    public struct File: Hashable, Sendable {
        /// The name of the field that contains the file; not empty.
        public let field: String

        /// The name of the file for the server; not empty.
        public let name: String

        /// The media type, such as `image/png`; nil to let the transport choose one. Contains no control characters.
        public let mediaType: String?

        /// The local file that contains the bytes.
        public let source: UploadSource

        /// The position of the first byte in ``source``; 0 except for data from memory. All in-memory data of a form is in one local file.
        public let offset: Int64

        /// The number of bytes.
        public let length: Int64

        /// Creates a file.
        ///
        /// - Parameters:
        ///   - field: The name of the field.
        ///   - name: The file's name for the server.
        ///   - mediaType: The media type; nil for the default of the transport.
        ///   - source: The local content.
        ///   - offset: The position of the first byte in the source, at least 0.
        ///   - length: The number of bytes, at least 0; nil for the size of the source.
        public init(
            field: String, name: String, mediaType: String? = nil, source: UploadSource, offset: Int64 = 0, length: Int64? = nil
        ) {
            self.field = field
            self.name = name
            self.mediaType = mediaType
            self.source = source
            self.offset = offset
            self.length = length ?? source.size
        }
    }

    /// The parts, in the order in which they are sent.
    public let parts: [Part]

    /// Creates a form. For the queue and tests of transports.
    public init(parts: [Part]) {
        self.parts = parts
    }

    /// The files, in order.
    public var files: [File] {
        parts.compactMap { part in
            if case .file(let file) = part { file } else { nil }
        }
    }

    /// The number of bytes of all files, limited to `Int64.max`. Excludes text fields.
    public var size: Int64 {
        files.reduce(0) { sum, file in
            let (next, overflows) = sum.addingReportingOverflow(file.length)
            return overflows ? .max : next
        }
    }
}
