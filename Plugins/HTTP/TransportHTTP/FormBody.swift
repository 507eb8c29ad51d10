import CurlEngine
import TransportSupport

/// A form with text fields and a file (`multipart/form-data`, RFC 7578), streamed from where the file is.
struct FormBody {
    /// What the request names as its type.
    let contentType: String
    let body: HTTPBody
    /// How many bytes come before the file's own.
    let prefixLength: Int64

    /// - Parameters:
    ///   - fields: In the order in which they are sent.
    ///   - fileName: As bytes, which need not be UTF-8.
    ///   - boundary: Must be in none of the parts (RFC 2046, section 5.1.1); a long random one is not.
    init(
        fields: [(name: String, value: String)], fileField: String, fileName: [UInt8], mediaType: String, file: FileReader, size: Int64,
        boundary: String = "----TransferKit" + Self.random()
    ) {
        var prefix: [UInt8] = []
        func disposition(_ name: String) {
            prefix += "--\(boundary)\r\nContent-Disposition: form-data; name=\"".utf8
            prefix += Self.quoted(Array(name.utf8)) + Array("\"".utf8)
        }
        for field in fields {
            disposition(field.name)
            prefix += "\r\n\r\n\(field.value)\r\n".utf8
        }
        disposition(fileField)
        prefix += Array("; filename=\"".utf8) + Self.quoted(fileName)
        prefix += "\"\r\nContent-Type: \(mediaType)\r\n\r\n".utf8
        contentType = "multipart/form-data; boundary=\(boundary)"
        prefixLength = Int64(prefix.count)
        body = .sequence([.bytes(prefix), .file(file, offset: 0, length: size), .bytes(Array("\r\n--\(boundary)--\r\n".utf8))])
    }

    /// A name between quotes, as browsers write it and so all servers read it (the HTML standard, "Multipart form data"; RFC 7578 leaves it open).
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
