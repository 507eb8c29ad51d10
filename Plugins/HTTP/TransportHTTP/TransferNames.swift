import HTTPSupport
import TransferCore

/// What texts of an endpoint stand for in one transfer.
struct TransferNames {
    /// The texts that stand for something in a URL.
    static let places = ["{name}", "{path}", transfer]

    /// Stands for an ID that no two transfers have.
    static let transfer = "{transfer}"

    let path: RemotePath
    let transferID: String

    init(_ attempt: FileAttempt) {
        path = attempt.remotePath
        transferID = attempt.transferID
    }

    /// Puts the names in the places that a text has for them.
    ///
    /// - Parameters:
    ///   - percentEncoded: Whether the text is a part of a URL. Otherwise names that are not UTF-8 are told as near as can be.
    ///   - others: More places and what goes there.
    func fill(_ text: String, percentEncoded: Bool, with others: [String: String] = [:]) -> String {
        func written(_ bytes: [UInt8]) -> String {
            percentEncoded ? RemotePath.percentEncoded(bytes) : String(decoding: bytes, as: UTF8.self)
        }
        let own = ["{name}": written(path.lastComponent), "{path}": written(path.bytes), Self.transfer: transferID]
        let values = own.merging(others) { $1 }
        var filled = ""
        var rest = text[...]
        // In one pass, as a name may hold such a text itself.
        while let start = rest.firstIndex(of: "{") {
            filled += rest[..<start]
            rest = rest[start...]
            let place = values.first { rest.hasPrefix($0.key) }
            filled += place?.value ?? "{"
            rest = rest.dropFirst(place?.key.count ?? 1)
        }
        return filled + rest
    }
}
