import CurlEngine
import Foundation
import TransportSupport

/// The features of a server (tus 1.0.0, "OPTIONS").
struct TUSFeatures: Hashable, Sendable {
    /// The server's versions, in its order of preference.
    var versions: [String] = []
    /// The names of the extensions, as the server sent them.
    var extensions: [String]
    /// The maximum size of uploads in bytes; nil if the server does not report it.
    var maximumSize: Int64?
    var checksumAlgorithms: [String] = []
    /// Whether the transport assumes the features because it could not query the server. The server may support more.
    private(set) var isGuess = false
    /// Whether the server reported the features itself.
    private(set) var isDeclared = false
    /// Whether the server's response contains a header of the IETF protocol, whose uploads are upload resources.
    private(set) var announcesUploadResources = false

    /// The features that are assumed for a server that does not report any.
    static let minimal = TUSFeatures(extensions: [TUSExtension.creation.rawValue])

    /// The features that are assumed for a server that can't be queried at the moment.
    static let guess = {
        var features = minimal
        features.isGuess = true
        return features
    }()

    /// Parses a response to `OPTIONS`; nil if the response has no header with the version, the versions or the extensions of the protocol.
    init?(_ headers: HTTPHeaders, in dialect: Dialect) {
        let identifyingHeaders = [dialect.versionsHeader, dialect.versionHeader, dialect.extensionsHeader]
        guard identifyingHeaders.contains(where: { headers[$0] != nil }) else { return nil }
        isDeclared = true
        versions = Self.list(headers[dialect.versionsHeader])
        extensions = Self.list(headers[dialect.extensionsHeader])
        maximumSize = headers[dialect.maximumSizeHeader].flatMap { Int64($0) }.flatMap { $0 >= 0 ? $0 : nil }
        checksumAlgorithms = Self.list(headers[dialect.checksumAlgorithmsHeader])
    }

    /// Returns the features that are assumed for a server whose response does not report any.
    static func assumed(after headers: HTTPHeaders) -> TUSFeatures {
        var features = minimal
        features.announcesUploadResources = IETFTerms.areDeclared(in: headers)
        return features
    }

    private init(extensions: [String]) {
        self.extensions = extensions
    }

    func offers(_ feature: TUSExtension) -> Bool {
        extensions.contains { $0.lowercased() == feature.rawValue }
    }

    /// Replaces the extensions that the server lists.
    ///
    /// If the new extensions contain `checksum` or `checksum-trailer`, and the server lists no algorithms, assumes SHA-1, which each
    /// server with these extensions must support (tus 1.0.0, "Checksum").
    mutating func replaceExtensions(_ replacement: [TUSExtension]) {
        extensions = replacement.map(\.rawValue)
        if checksumAlgorithms.isEmpty, offers(.checksum) || offers(.checksumTrailer) {
            checksumAlgorithms = [ChecksumAlgorithm.sha1.rawValue]
        }
    }

    private static func list(_ text: String?) -> [String] {
        (text ?? "").split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }
}
