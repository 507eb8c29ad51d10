import ArgumentParser
import SystemPackage
import TransferControl
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Replaces this process with the program `transferq-web`, which contains the web server. Most commands don't need the server, which would double
/// the size of this program.
struct WebCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "web", abstract: "Serves a page and an HTTP interface for the queue.",
        discussion: """
            Prints the URL of the page, with a token. Two files in the storage folder contain the tokens of the HTTP interface: web.token \
            allows everything, and web-read.token only reading. Anyone with web.token can control the queue, and send any file that you can \
            read. For access from other machines, a TLS certificate is required. Stop the server with Ctrl-C.

            Example: transferq web
            Example: transferq web --listen 192.168.1.5:8420 --certificate chain.pem --key key.pem
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var web: WebOptions

    func run() async throws {
        // transferq-web shows the queue in the storage folder, which would be the wrong queue for a fleet.
        guard CommandContext.current.queue == nil else { throw CommandFailure(.usage, "Use transferq --fleet URL web.") }
        var arguments = ["--store".utf8Bytes, try common.folder().bytes]
        if let listen = web.listen { arguments += ["--listen".utf8Bytes, ProcessArguments.bytes(of: listen)] }
        for name in web.name { arguments += ["--name".utf8Bytes, name.utf8Bytes] }
        if web.readOnly { arguments.append("--read-only".utf8Bytes) }
        if let (certificate, key) = web.certificateAndKey {
            arguments += ["--certificate".utf8Bytes, certificate.bytes, "--key".utf8Bytes, key.bytes]
        }
        let program = WebProgram.path
        let error = Self.replaceProcess(program, arguments)
        throw CommandFailure(.storage, "Cannot start \(program): \(error). Install transferq-web in the folder of transferq.")
    }

    /// Replaces this process with a program (execv(3)). Returns only after an error.
    static func replaceProcess(_ program: FilePath, _ arguments: [[UInt8]]) -> Errno {
        // The threads that run commands block signals, and the program would inherit their signal mask.
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe pthread_sigmask(SIG_SETMASK, &none, nil)
        let words = [program.bytes] + arguments
        var argv = unsafe words.map { unsafe strdup(($0 + [0]).map(CChar.init(bitPattern:))) } + [nil]
        unsafe program.withPlatformString { _ = unsafe execv($0, &argv) }
        let error = Errno(rawValue: errno)
        unsafe argv.forEach { unsafe free($0) }
        return error
    }
}

extension String {
    fileprivate var utf8Bytes: [UInt8] { Array(utf8) }
}
