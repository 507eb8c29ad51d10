public import ArgumentParser
import Foundation
import SystemPackage
public import TUSLoopback
import UnixSignals

@main
struct TUSLoopbackCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tus-loopback",
        abstract: "A tus 1.0.0 server on 127.0.0.1 with all extensions, for trying things out and for tests.",
        discussion: """
            Each upload is two files in the folder: <id>.bin with its bytes and <id>.json with its metadata and whether it is complete. What \
            the server was asked is served as JSON at /statistics. A complete upload is given back by GET, with ranges. It trusts everyone on this machine; end it with Ctrl-C.
            """)

    @Option(help: "Where uploads are kept; made if it is missing.")
    var folder: String

    @Option(help: "Where to listen; 0 for any free port.")
    var port: UInt16 = 0

    @Option(help: "The largest upload it takes, in bytes.")
    var maxSize: Int64?

    @Option(help: "How many bytes of body each connection takes or gives a second.")
    var rate: Int64?

    @Option(help: "Cut the first request that brings as many bytes of body; may be repeated for later requests.")
    var cutAfter: [Int64] = []

    @Option(help: "Leave an extension of tus out; may be repeated.")
    var without: [LoopbackExtension] = []

    @Option(help: "Remove an incomplete upload so many seconds after its last change (extension expiration).")
    var expiresAfter: Int?

    @Flag(help: "Do not give complete uploads back.")
    var noDownloads = false

    @Flag(help: "Answer with paths instead of whole URLs in Location.")
    var relativeLocation = false

    func validate() throws {
        for (name, value) in [("--max-size", maxSize), ("--rate", rate)] {
            if let value, value < 1 { throw ValidationError("\(name) has to be at least 1 byte, not \(value).") }
        }
        if let expiresAfter, expiresAfter < 1 {
            throw ValidationError("--expires-after has to be at least 1 second, not \(expiresAfter).")
        }
        if let value = cutAfter.first(where: { $0 < 0 }) { throw ValidationError("--cut-after can't be negative, as \(value) is.") }
    }

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        let options = LoopbackOptions(
            maximumSize: maxSize, usesRelativeLocation: relativeLocation, bytesPerSecond: rate,
            extensions: Set(LoopbackExtension.allCases).subtracting(without), lifetime: expiresAfter.map { .seconds($0) },
            servesDownloads: !noDownloads)
        let server = TUSLoopbackServer(folder: FilePath(folder), port: port, options: options)
        for bytes in cutAfter { server.inject(.cut(afterBodyBytes: bytes)) }
        let url = try await server.start()
        // Not print: a script that waits for the line reads it through a pipe, which print would not flush.
        try FileHandle.standardOutput.write(contentsOf: Data("listening on \(url.absoluteString)\n".utf8))
        for await _ in signals { break }
        await server.stop()
    }
}

extension LoopbackExtension: ExpressibleByArgument {}
