import CFuzzer
import Foundation

/// Runs libFuzzer on the target that the environment variable `FUZZ_TARGET` names, and passes the command-line arguments to libFuzzer.
/// Without this variable, prints the names of the targets.
@main struct Fuzzer {
    typealias Target = @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt

    /// The targets by name. The closures must not capture anything, because libFuzzer calls them as C functions without a context.
    private static let targets: [String: Target] = unsafe [
        "checkpoint-http": { unsafe run(HTTPTargets.checkpoint, $0, $1) },
        "checkpoint-sftp": { unsafe run(SFTPTargets.checkpoint, $0, $1) },
        "checkpoint-tus": { unsafe run(TUSTargets.checkpoint, $0, $1) },
        "content-disposition": { unsafe run(HTTPTargets.contentDisposition, $0, $1) },
        "control-frames": { unsafe run(ControlTargets.frames, $0, $1) },
        "control-requests": { unsafe run(ControlTargets.requests, $0, $1) },
        "http-responses": { unsafe run(HTTPTargets.responses, $0, $1) },
        "http-ranges": { unsafe run(HTTPTargets.ranges, $0, $1) },
        "known-hosts": { unsafe run(SSHTargets.knownHosts, $0, $1) },
        "resource-responses": { unsafe run(ResourceTargets.responses, $0, $1) },
        "retry-after": { unsafe run(HTTPTargets.retryAfter, $0, $1) },
        "settings": { unsafe run(SettingsTargets.settings, $0, $1) },
        "sftp-packets": { unsafe run(SFTPTargets.packets, $0, $1) },
        "store-events": { unsafe run(StoreTargets.event, $0, $1) },
        "store-rows": { unsafe run(StoreTargets.rows, $0, $1) },
        "tus-responses": { unsafe run(TUSTargets.responses, $0, $1) },
        "webdav-listings": { unsafe run(WebDAVTargets.listing, $0, $1) },
        "words": { unsafe run(SettingsTargets.words, $0, $1) },
    ]

    static func main() {
        guard let name = ProcessInfo.processInfo.environment["FUZZ_TARGET"] else {
            return print(unsafe targets.keys.sorted().joined(separator: "\n"))
        }
        guard let target = unsafe targets[name] else {
            print("There is no target \(name).")
            exit(2)
        }
        var count = CommandLine.argc
        var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = unsafe CommandLine.unsafeArgv
        exit(unsafe LLVMFuzzerRunDriver(&count, &arguments, target))
    }

    /// Passes one input to a target. libFuzzer reports the input if the target traps or a ``require(_:_:)`` fails.
    private static func run(_ target: ([UInt8]) -> Void, _ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
        target(unsafe Array(UnsafeBufferPointer(start: start, count: count)))
        return 0
    }
}

/// Aborts the process if the condition is false, so that libFuzzer reports the input.
///
/// - Parameter message: The requirement, as a statement that must be true.
func require(_ condition: Bool, _ message: @autoclosure () -> String) {
    guard !condition else { return }
    FileHandle.standardError.write(Data("Requirement not met: \(message())\n".utf8))
    abort()
}
