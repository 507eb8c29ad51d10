import Foundation
import SystemPackage
import TransferKit

/// One field or file of a new form, as a message contains it. The form's ``ItemRecord`` contains the concatenated data of all files in memory.
struct FormPartRecord: Codable, Sendable {
    private var field: String
    /// The value of a text field.
    private var text: String?
    /// The path of a local file.
    private var path: Data?
    /// The length, in bytes, of a file in memory.
    private var length: Int?
    private var name: String?
    private var mediaType: String?

    init(_ part: FormPart) {
        field = part.field
        name = part.name
        mediaType = part.mediaType
        switch part.content {
        case .text(let text): self.text = text
        case .path(let path): self.path = Data(path.bytes)
        case .data(let data): length = data.count
        }
    }

    /// An estimate of the size in a message, in bytes. JSON encodes a byte of a string in up to six bytes.
    var cost: Int {
        128 + [field, text ?? "", name ?? "", mediaType ?? ""].reduce(0) { $0 + 6 * $1.utf8.count } + (path?.count ?? 0) * 4 / 3
    }

    /// Creates the fields and files of a form.
    ///
    /// - Parameters:
    ///   - data: The concatenated data of all files in memory.
    ///   - base: The folder to which relative paths refer.
    /// - Throws: ``QueueError`` with the code `invalidMessage` if a record is incomplete, or if the total length of the
    ///   records is not the length of `data`.
    static func parts(_ records: [FormPartRecord], with data: Data, in base: FilePath) throws(QueueError) -> [FormPart] {
        var rest = data
        var parts: [FormPart] = []
        for record in records {
            switch (record.text, record.path, record.length) {
            case (let text?, nil, nil): parts.append(.text(text, field: record.field))
            case (nil, let path?, nil):
                parts.append(
                    .file(base.resolving(FilePath(bytes: path)), field: record.field, name: record.name, mediaType: record.mediaType))
            case (nil, nil, let length?) where (0...rest.count).contains(length):
                guard let name = record.name else { throw invalid }
                parts.append(.data(rest.prefix(length), field: record.field, name: name, mediaType: record.mediaType))
                rest = rest.dropFirst(length)
            default: throw invalid
            }
        }
        guard rest.isEmpty else { throw invalid }
        return parts
    }

    private static var invalid: QueueError { QueueError(.invalidMessage, "A part of a new form is incomplete.") }
}
