import ArgumentParser
import Dispatch
import Foundation
import SystemPackage
import TransferControl
import TransferWeb
import UnixSignals

@main
struct TransferQWeb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transferq-web", abstract: "Serves a web page and an HTTP interface for a queue.",
        discussion: "\"transferq web\" starts this program. See transferq web --help.")

    @Option(help: "The storage folder of the queue.")
    var store: String

    @Option(help: "The address and port to listen on.")
    var listen = "127.0.0.1:8420"

    @Option(help: "Another host name by which browsers reach the server; repeatable.")
    var name: [String] = []

    @Flag(help: "Allow no changes.")
    var readOnly = false

    @Option(help: "The TLS certificate chain as a PEM file.")
    var certificate: String?

    @Option(help: "The private key of the certificate as a PEM file.")
    var key: String?

    /// Whether to exit at the end of standard input. The agent holds the other end of the pipe, so the server also exits if the agent is killed.
    @Flag(help: .hidden)
    var endsWithInput = false

    func run() async throws {
        // The environment can contain the credentials that the checks of accounts need.
        ProcessMemoryProtection.enable()
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint, .sighup)
        guard var options = WebServerOptions(listeningOn: listen) else {
            throw Self.failure("--listen must be an address and a port, such as 127.0.0.1:8420 or [::1]:0.", 2)
        }
        (options.hostNames, options.isReadOnly) = (name, readOnly)
        // proc(5): the path of this program.
        if let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") {
            options.program = FilePath(own).removingLastComponent().appending("transferq")
        }
        switch (certificate, key) {
        case (nil, nil): break
        case (let chain?, let key?): options.certificate = .init(chain: FilePath(chain), key: FilePath(key))
        default: throw Self.failure("--certificate and --key must be used together.", 2)
        }
        let server = WebServer(RemoteTransferQueue(folder: store), options: options)
        let url: String
        do {
            url = try await server.start()
        } catch {
            throw Self.failure("\(error)", 3)
        }
        // Scripts wait for this line, and print would not flush it if standard output is a pipe.
        try FileHandle.standardOutput.write(contentsOf: Data("\(url)\n".utf8))
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let waiting = Task {
            for await _ in signals { break }
            end.yield()
        }
        if endsWithInput {
            // The read blocks until the other end is closed.
            DispatchQueue(label: "transferq-web.input").async {
                while let bytes = try? FileHandle.standardInput.read(upToCount: 4_096), !bytes.isEmpty {}
                end.yield()
            }
        }
        for await _ in ends { break }
        waiting.cancel()
        await server.stop()
    }

    /// Prints a message in the format of `transferq`, and returns the error with the exit status.
    private static func failure(_ message: String, _ status: Int32) -> ExitCode {
        FileHandle.standardError.write(Data("transferq: \(message)\n".utf8))
        return ExitCode(status)
    }
}
