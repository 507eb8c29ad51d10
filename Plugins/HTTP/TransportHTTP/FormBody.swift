import CurlEngine
import TransportSupport

/// The body of a form with text fields and files (`multipart/form-data`, RFC 7578). The files are read while they are sent.
struct FormBody {
    /// One file of the form.
    struct File {
        /// The name of the field that contains the file.
        var field: String
        /// The name of the file as bytes, which need not be UTF-8.
        var name: [UInt8]
        var mediaType: String
        var reader: FileReader
        var size: Int64
    }

    /// The value of `Content-Type`.
    let contentType: String
    let body: HTTPBody
    /// The number of bytes before the content of the last file.
    let prefixLength: Int64

    /// - Parameters:
    ///   - fields: The text fields, in the order in which they are sent.
    ///   - companions: The additional files, which precede the last file.
    ///   - boundary: A text that must not occur in the parts (RFC 2046, section 5.1.1). A long random text practically never occurs in them.
    init(
        fields: [(name: String, value: String)], companions: [File] = [], file: File,
        boundary: String = "----TransferKit" + Self.random()
    ) {
        var parts: [HTTPBody] = []
        var text: [UInt8] = []
        func disposition(_ name: String) {
            text += "--\(boundary)\r\nContent-Disposition: form-data; name=\"".utf8
            text += Self.quoted(Array(name.utf8)) + Array("\"".utf8)
        }
        for field in fields {
            disposition(field.name)
            text += "\r\n\r\n\(field.value)\r\n".utf8
        }
        for file in companions + [file] {
            disposition(file.field)
            text += Array("; filename=\"".utf8) + Self.quoted(file.name)
            text += "\"\r\nContent-Type: \(file.mediaType)\r\n\r\n".utf8
            parts += [.bytes(text), .file(file.reader, offset: 0, length: file.size)]
            text = Array("\r\n".utf8)
        }
        contentType = "multipart/form-data; boundary=\(boundary)"
        prefixLength = (HTTPBody.sequence(parts).length ?? 0) - file.size
        body = .sequence(parts + [.bytes(text + Array("--\(boundary)--\r\n".utf8))])
    }

    /// Escapes a name for use between quotes, as browsers do (HTML standard, "Multipart form data"). RFC 7578 does not define the escaping.
    static func quoted(_ name: [UInt8]) -> [UInt8] {
        name.flatMap { byte -> [UInt8] in
            switch byte {
            case UInt8(ascii: "\""): Array("%22".utf8)
            case 0x0D: Array("%0D".utf8)
            case 0x0A: Array("%0A".utf8)
            default: [byte]
            }
        }
    }

    private static func random() -> String {
        let bits = [UInt64.random(in: 0 ... .max), UInt64.random(in: 0 ... .max)]
        return bits.map { String($0, radix: 36) }.joined()
    }
}
