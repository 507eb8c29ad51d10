public import ArgumentParser
import Foundation
import SystemPackage
public import TUSLoopback
import UnixSignals

@main
struct TUSLoopbackCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tus-loopback",
        abstract: "A server for resumable uploads on 127.0.0.1, for experiments and tests: tus 1.0.0, or the IETF protocol.",
        discussion: """
            Each upload consists of two files in the folder: <id>.bin with its bytes, and <id>.json with its properties. GET downloads a \
            complete upload or a range of its bytes. /statistics returns all requests as JSON. The server does not authenticate clients: \
            every program on this machine can use the server. Press Ctrl-C to stop the server.
            """)

    @Option(help: "The folder for uploads, created if it is missing.")
    var folder: String

    @Option(help: "The protocol: tus, or a version of the IETF's Resumable Uploads for HTTP: 6, 8, 9, 10 or final.")
    var dialect = LoopbackDialect.tus

    @Option(help: "The port to listen on; 0 for any free port.")
    var port: UInt16 = 0

    @Option(help: "The largest accepted upload in bytes (default: no limit).")
    var maxSize: Int64?

    @Option(help: "The maximum number of body bytes per second on each connection (default: no limit).")
    var rate: Int64?

    @Option(help: "Close the connection of an upload request after this number of body bytes; repeat the option for further requests.")
    var cutAfter: [Int64] = []

    @Option(help: "Disable an extension of tus; repeatable.")
    var without: [LoopbackExtension] = []

    @Option(help: "Expire incomplete uploads this number of seconds after their last change (default: never).")
    var expiresAfter: Int?

    @Option(help: "IETF: the smallest accepted upload in bytes (default: no limit).")
    var minSize: Int64?

    @Option(help: "IETF: the maximum number of content bytes in a request (default: no limit).")
    var maxAppendSize: Int64?

    @Option(help: "IETF: the minimum number of content bytes in a request, except the last (default: no limit).")
    var minAppendSize: Int64?

    @Option(help: "IETF: send an interim response (104) with the offset whenever this number of bytes has arrived (default: never).")
    var progressInterval: Int64?

    @Flag(help: "IETF: send no interim responses (104), as behind a proxy that drops them.")
    var noInterimResponses = false

    @Flag(help: "IETF: report no digests of files.")
    var noDigests = false

    @Flag(help: "IETF: forget the URL of an upload when it is complete.")
    var forgetComplete = false

    @Option(help: "IETF: close the connection without responding to the request that completes an upload, this number of times.")
    var loseFinalResponses = 0

    @Flag(help: "Disable downloads.")
    var noDownloads = false

    @Flag(help: "Send paths instead of URLs in Location.")
    var relativeLocation = false

    func validate() throws {
        let sizes = [
            ("--max-size", maxSize), ("--rate", rate), ("--min-size", minSize), ("--max-append-size", maxAppendSize),
            ("--min-append-size", minAppendSize), ("--progress-interval", progressInterval),
        ]
        for (name, value) in sizes {
            if let value, value < 1 { throw ValidationError("\(name) must be at least 1 byte, not \(value).") }
        }
        if let expiresAfter, expiresAfter < 1 {
            throw ValidationError("--expires-after must be at least 1 second, not \(expiresAfter).")
        }
        if let value = cutAfter.first(where: { $0 < 0 }) { throw ValidationError("--cut-after must be at least 0, not \(value).") }
    }

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        let options = LoopbackOptions(
            maximumSize: maxSize, usesRelativeLocation: relativeLocation, bytesPerSecond: rate,
            extensions: Set(LoopbackExtension.allCases).subtracting(without), lifetime: expiresAfter.map { .seconds($0) },
            servesDownloads: !noDownloads, dialect: dialect, minimumSize: minSize, maximumAppendSize: maxAppendSize,
            minimumAppendSize: minAppendSize, sendsInterimResponses: !noInterimResponses, progressInterval: progressInterval,
            reportsDigests: !noDigests, forgetsCompleteUploads: forgetComplete)
        let server = TUSLoopbackServer(folder: FilePath(folder), port: port, options: options)
        for bytes in cutAfter { server.inject(.cut(afterBodyBytes: bytes)) }
        if loseFinalResponses > 0 { server.inject(.loseFinalResponse, times: loseFinalResponses) }
        let url = try await server.start()
        // Scripts wait for this line, and print would not flush it if standard output is a pipe.
        try FileHandle.standardOutput.write(contentsOf: Data("listening on \(url.absoluteString)\n".utf8))
        for await _ in signals { break }
        await server.stop()
    }
}

extension LoopbackExtension: ExpressibleByArgument {}
extension LoopbackDialect: ExpressibleByArgument {}
