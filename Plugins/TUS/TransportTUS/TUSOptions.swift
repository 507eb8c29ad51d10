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
    /// The most bytes of one `PATCH`, 1 or more; nil for the rest of the file. A session's own chunk size takes precedence.
    public var chunkSize: Int64?

    /// The number of bytes that all chunks but the last are a multiple of, from 1 to ``chunkSize``.
    public var chunkMultiple: Int64

    /// The size in bytes up to which a file is sent with the request that creates the upload, if the server supports that; 0 for never.
    public var singleRequestSize: Int64

    /// Whether `PATCH` is always sent as `POST` with `X-HTTP-Method-Override`. Without it, only after a 405 or 501.
    public var methodOverride: Bool

    /// The options for all requests.
    public var requests: RequestOptions

    /// Makes options. Each parameter is the property of the same name.
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

    /// Reads the options from the settings of an endpoint, which are texts by name.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint` that names the invalid setting.
    public init(settings: [String: String]) throws(TransferError) {
        self = try Self.table.read(settings)
        try requests.validate()
        if let problem = chunkSize.flatMap(problem(ofChunksOf:)) { throw .invalidEndpoint(problem) }
    }

    /// The options as settings of an endpoint: those with other values than the defaults.
    public var settings: [String: String] { Self.table.write(self) }

    /// Why chunks of this size can't be a multiple of ``chunkMultiple``; nil if they can.
    func problem(ofChunksOf chunkSize: Int64) -> String? {
        guard chunkSize < chunkMultiple else { return nil }
        return
            "Chunks of at most \(chunkSize) bytes can't be a multiple of the setting chunkMultiple, \(chunkMultiple); use at least that size."
    }

    static let table = SettingTable(
        of: .tus, TUSOptions(),
        [
            Setting(
                "chunkMultiple", \.chunkMultiple, .bytes(from: 1), "all chunks except the last are a multiple of this many bytes, 1 or more"
            ),
            Setting("chunkSize", \.chunkSize, .bytes(from: 1), "the most bytes of one `PATCH`, 1 or more", nil: "the rest of the file"),
            Setting(
                "methodOverride", \.methodOverride, .flag, "`true` to always send `PATCH` as `POST` with `X-HTTP-Method-Override`"),
            Setting(
                "singleRequestSize", \.singleRequestSize, .bytes(from: 0),
                "the largest file that is sent with the request that creates it, in bytes; 0 for none"),
        ]
            + RequestOptions.settings { (name, value) throws(TransferError) in try ReservedHeaders.tus.check(name, value) }
            .map { $0.within(\.requests) })
}

extension ReservedHeaders {
    /// The reserved headers of the tus transport, in all dialects.
    static let tus = ReservedHeaders(of: .tus, names: ["content-type", "x-http-method-override"], prefixes: ["upload-", "tus-"])
}
