import CurlEngine
import Foundation

/// What a server offers (tus 1.0.0, "OPTIONS").
struct ServerFeatures: Hashable, Sendable {
    /// An extension of the protocol. What a server names beside these is ignored.
    enum Extension: String {
        case creation
        case creationWithUpload = "creation-with-upload"
        case creationDeferLength = "creation-defer-length"
        case checksum
        case checksumTrailer = "checksum-trailer"
        case concatenation
        case concatenationUnfinished = "concatenation-unfinished"
    }

    /// The versions that the server speaks, in its order of preference.
    var versions: [String] = []
    /// The extensions in the server's own words.
    var extensions: [String]
    /// The largest upload that it takes, in bytes; nil if it does not say.
    var maximumSize: Int64?
    /// The algorithms that it can verify content with.
    var checksumAlgorithms: [String] = []
    /// Whether it could not be asked, so that it may well offer more.
    private(set) var isGuess = false

    /// What is counted on where a server does not tell.
    static let minimal = ServerFeatures(extensions: [Extension.creation.rawValue])

    /// What is counted on while a server can't be asked.
    static let guess = {
        var features = minimal
        features.isGuess = true
        return features
    }()

    /// Reads an answer to `OPTIONS`; nil if it says nothing of the protocol.
    init?(_ headers: HTTPHeaders, in dialect: Dialect) {
        let signs = [dialect.versionsHeader, dialect.versionHeader, dialect.extensionsHeader]
        guard signs.contains(where: { headers[$0] != nil }) else { return nil }
        versions = Self.list(headers[dialect.versionsHeader])
        extensions = Self.list(headers[dialect.extensionsHeader])
        maximumSize = headers[dialect.maximumSizeHeader].flatMap { Int64($0) }.flatMap { $0 >= 0 ? $0 : nil }
        checksumAlgorithms = Self.list(headers[dialect.checksumAlgorithmsHeader])
    }

    private init(extensions: [String]) {
        self.extensions = extensions
    }

    func offers(_ feature: Extension) -> Bool {
        extensions.contains { $0.lowercased() == feature.rawValue }
    }

    private static func list(_ text: String?) -> [String] {
        (text ?? "").split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }
}
