import CurlEngine
import TransportSupport

/// The body of a form with text fields and files (`multipart/form-data`, RFC 7578). The files are read while they are sent.
struct FormBody {
    struct File {
        var field: String
        /// The name of the file as bytes, which need not be UTF-8.
        var name: [UInt8]
        var mediaType: String
        var reader: FileReader
        var offset: Int64 = 0
        var size: Int64
        /// Whether the progress includes the bytes of this file.
        var contributesToProgress = true
    }

    enum Part {
        case field(name: String, value: String)
        case file(File)
    }

    let contentType: String
    let body: HTTPBody
    /// The total size, in bytes, of the files that the progress includes.
    let size: Int64
    /// The byte ranges, within the body, of the files that the progress includes, in order.
    private let progressRanges: [Range<Int64>]

    /// - Parameter parts: The text fields and files, in the order in which they are sent. The sum of their sizes must not overflow.
    init(_ parts: [Part]) {
        // The boundary must not occur in the parts (RFC 2046, section 5.1.1). A long random text practically never occurs in them.
        let boundary = "----TransferKit" + Self.random()
        var bodies: [HTTPBody] = []
        var progressRanges: [Range<Int64>] = []
        var text: [UInt8] = []
        var position: Int64 = 0
        func disposition(_ name: String) {
            text += "--\(boundary)\r\nContent-Disposition: form-data; name=\"".utf8
            text += Self.quoted(Array(name.utf8)) + Array("\"".utf8)
        }
        for part in parts {
            switch part {
            case .field(let name, let value):
                disposition(name)
                text += "\r\n\r\n\(value)\r\n".utf8
            case .file(let file):
                disposition(file.field)
                text += Array("; filename=\"".utf8) + Self.quoted(file.name)
                text += "\"\r\nContent-Type: \(file.mediaType)\r\n\r\n".utf8
                bodies += [.bytes(text), .file(file.reader, offset: file.offset, length: file.size)]
                position += Int64(text.count)
                if file.contributesToProgress { progressRanges.append(position..<position + file.size) }
                position += file.size
                text = Array("\r\n".utf8)
            }
        }
        contentType = "multipart/form-data; boundary=\(boundary)"
        body = .sequence(bodies + [.bytes(text + Array("--\(boundary)--\r\n".utf8))])
        self.progressRanges = progressRanges
        size = progressRanges.reduce(0) { $0 + Int64($1.count) }
    }

    /// Returns how many of the first `accepted` bytes of the body belong to files that the progress includes.
    func contentBytes(in accepted: Int64) -> Int64 {
        progressRanges.reduce(0) { $0 + Int64($1.clamped(to: 0..<max(0, accepted)).count) }
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
