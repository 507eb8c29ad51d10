import HTTPSupport
import TransferCore

/// The values for the placeholders in a transfer's URL, its form fields, and the paths of its additional files.
struct TransferNames {
    /// The placeholders in URLs.
    static let all = ["{name}", "{path}", transfer]

    /// The placeholder for the unique ID of a transfer; see ``FileAttempt/transferID``.
    static let transfer = "{transfer}"

    let path: RemotePath
    let transferID: String

    init(_ attempt: FileAttempt) {
        path = attempt.remotePath
        transferID = attempt.transferID
    }

    /// - Parameter path: A remote name, for an address without a placeholder for the transfer.
    init(_ path: RemotePath) {
        self.path = path
        transferID = ""
    }

    /// Replaces the placeholders in a text.
    ///
    /// - Parameters:
    ///   - percentEncoded: Whether to encode names for a URL. If not, replacement characters take the place of invalid UTF-8 in names.
    ///   - others: Additional placeholders with their values.
    func fill(_ text: String, percentEncoded: Bool, with others: [String: String] = [:]) -> String {
        func written(_ bytes: [UInt8]) -> String {
            percentEncoded ? RemotePath.percentEncoded(bytes) : String(decoding: bytes, as: UTF8.self)
        }
        let own = ["{name}": written(path.lastComponent), "{path}": written(path.bytes), Self.transfer: transferID]
        let values = own.merging(others) { $1 }
        var filled = ""
        var rest = text[...]
        // Replaces all placeholders in one pass, because a name may contain the text of a placeholder.
        while let start = rest.firstIndex(of: "{") {
            filled += rest[..<start]
            rest = rest[start...]
            let placeholder = values.first { rest.hasPrefix($0.key) }
            filled += placeholder?.value ?? "{"
            rest = rest.dropFirst(placeholder?.key.count ?? 1)
        }
        return filled + rest
    }
}
