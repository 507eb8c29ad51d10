public import ArgumentParser
import Foundation
import SystemPackage
public import TUSLoopback
import UnixSignals

@main
struct TUSLoopbackCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tus-loopback",
        abstract: "A tus 1.0.0 server on 127.0.0.1 for experiments and tests.",
        discussion: """
            Each upload consists of two files in the folder: <id>.bin with its bytes, and <id>.json with its metadata and whether it is \
            complete. GET downloads complete uploads and ranges of them. /statistics returns all requests as JSON. The server does not \
            authenticate clients on this machine. Stop it with Ctrl-C.
            """)

    @Option(help: "The folder for uploads, created if it is missing.")
    var folder: String

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

    @Flag(help: "Disable downloads.")
    var noDownloads = false

    @Flag(help: "Send paths instead of URLs in Location.")
    var relativeLocation = false

    func validate() throws {
        for (name, value) in [("--max-size", maxSize), ("--rate", rate)] {
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
            servesDownloads: !noDownloads)
        let server = TUSLoopbackServer(folder: FilePath(folder), port: port, options: options)
        for bytes in cutAfter { server.inject(.cut(afterBodyBytes: bytes)) }
        let url = try await server.start()
        // Scripts wait for this line, and print would not flush it if standard output is a pipe.
        try FileHandle.standardOutput.write(contentsOf: Data("listening on \(url.absoluteString)\n".utf8))
        for await _ in signals { break }
        await server.stop()
    }
}

extension LoopbackExtension: ExpressibleByArgument {}
