import CurlEngine
public import HTTPSupport
public import TransferCore
import TransportSupport

/// The options of an endpoint for ``TUSTransport``.
///
/// ```swift
/// let endpoint = Endpoint.tus("https://upload.example.com/files/", options: TUSOptions(chunkSize: 50 << 20))
/// ```
public struct TUSOptions: Hashable, Sendable {
    /// The maximum number of bytes of one `PATCH`, 1 or more. If nil, a `PATCH` sends the rest of the file, or at most 8 MiB with a
    /// checksum in a header. A session's chunk size takes precedence.
    public var chunkSize: Int64?

    /// A number of bytes, from 1 to ``chunkSize``. The size of every chunk except the last is a multiple of this number.
    public var chunkMultiple: Int64

    /// The maximum size in bytes of a file that is sent with the request that creates its upload, if the server supports that; 0 for never.
    public var singleRequestSize: Int64

    /// Whether to always send `PATCH` as `POST` with `X-HTTP-Method-Override`. If false, the transport does so only after a 405 or 501 response.
    public var methodOverride: Bool

    /// The options for all requests.
    public var requests: RequestOptions

    /// Creates options. Each parameter sets the property of the same name.
    public init(
        chunkSize: Int64? = nil, chunkMultiple: Int64 = 1, singleRequestSize: Int64 = 1 << 20, methodOverride: Bool = false,
        requests: RequestOptions = RequestOptions()
    ) {
        self.chunkSize = chunkSize
        self.chunkMultiple = chunkMultiple
        self.singleRequestSize = singleRequestSize
        self.methodOverride = methodOverride
        self.requests = requests
    }

    /// Reads the options from an endpoint's settings, a dictionary of strings.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint` that names the invalid setting.
    public init(settings: [String: String]) throws(TransferError) {
        self = try Self.table.read(settings)
        try requests.validate()
        if let problem = chunkSize.flatMap(problem(ofChunksOf:)) { throw .invalidEndpoint(problem) }
    }

    /// The options as settings of an endpoint, without those that have their default value.
    public var settings: [String: String] { Self.table.write(self) }

    /// Explains why chunks of at most `chunkSize` bytes can't be a multiple of ``chunkMultiple``; nil if they can.
    func problem(ofChunksOf chunkSize: Int64) -> String? {
        guard chunkSize < chunkMultiple else { return nil }
        return
            "Chunks of at most \(chunkSize) bytes can't be multiples of \(chunkMultiple) bytes (setting chunkMultiple); use a chunk size of at least \(chunkMultiple) bytes."
    }

    static let table = SettingTable(
        of: .tus, TUSOptions(),
        [
            Setting(
                "chunkMultiple", \.chunkMultiple, .bytes(from: 1), "all chunks except the last are a multiple of this many bytes, 1 or more"
            ),
            Setting(
                "chunkSize", \.chunkSize, .bytes(from: 1), "the maximum number of bytes of one `PATCH`, 1 or more",
                nil: "the rest of the file"),
            Setting(
                "methodOverride", \.methodOverride, .flag, "`true` to always send `PATCH` as `POST` with `X-HTTP-Method-Override`"),
            Setting(
                "singleRequestSize", \.singleRequestSize, .bytes(from: 0),
                "the maximum size in bytes of a file that is sent in the creation request; 0 for none"),
        ]
            + RequestOptions.settings { (name, value) throws(TransferError) in try ReservedHeaders.tus.check(name, value) }
            .map { $0.within(\.requests) })
}

extension ReservedHeaders {
    /// The reserved headers of the tus transport, in all dialects.
    static let tus = ReservedHeaders(of: .tus, names: ["content-type", "x-http-method-override"], prefixes: ["upload-", "tus-"])
}
