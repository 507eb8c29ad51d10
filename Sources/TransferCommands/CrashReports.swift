import Foundation
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Keeps secrets out of the crash reports of Swift's runtime.
enum CrashReports {
    /// The environment variable that makes the runtime omit registers, and the memory that they point to, from crash reports. Registers
    /// and memory can contain a secret. A value set by the user takes precedence.
    static let variable = (name: "SWIFT_BACKTRACE", value: "registers=none")

    /// The last words of the commands that read credentials, such as `check` for `account check`.
    private static let commands: Set<String> = ["run", "check", "doctor", "stream"]

    /// Restarts this process with the variable set if its command reads credentials: `run`, `agent run`, `stream`, `account check` or
    /// `doctor`. Also restarts the process if another argument is one of these words, which is harmless.
    ///
    /// The runtime reads the variable only when a process starts. If the user has set the variable or the restart fails, this process
    /// continues. Call this method before anything else.
    static func excludeSecrets() {
        guard !commands.isDisjoint(with: ProcessArguments.current), unsafe getenv(variable.name) == nil,
            let program = Bundle.main.executablePath
        else { return }
        _ = unsafe setenv(variable.name, variable.value, 1)
        // Passes the bytes of the arguments, because they can be invalid UTF-8.
        let arguments = unsafe ProcessArguments.words.map { unsafe strdup(($0 + [0]).map(CChar.init(bitPattern:))) } + [nil]
        _ = unsafe execv(program, arguments)
        // The restart failed.
        unsafe arguments.forEach { unsafe free($0) }
    }
}
