package import Foundation

/// The parts of a form as they are stored, without the content of the files.
package struct FormContent: Sendable, Codable, Equatable {
    package struct File: Sendable, Codable, Equatable {
        /// The local path as stored; nil for in-memory data, which is in the form's file in the ``Spool``.
        package var path: Data?
        /// The offset of the data in the form's file in the ``Spool``, in bytes; 0 for a local file.
        package var offset: Int64 = 0
        package var name: String
        package var mediaType: String?
        /// The size in bytes when the form was enqueued.
        package var size: Int64
    }

    package struct Part: Sendable, Codable, Equatable {
        package var field: String
        /// The value of a text field; nil for a file.
        package var text: String?
        /// The file; nil for a text field.
        package var file: File?
    }

    package var parts: [Part] = []

    package var files: [File] { parts.compactMap(\.file) }

    package var hasData: Bool { parts.contains { $0.file.map { $0.path == nil } ?? false } }
}
