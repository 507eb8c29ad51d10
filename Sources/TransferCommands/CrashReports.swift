import Foundation
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Keeps secrets out of the crash reports of Swift's runtime.
enum CrashReports {
    /// Omits registers and the memory they point to, which may hold a secret. A value set by the user takes precedence.
    static let variable = (name: "SWIFT_BACKTRACE", value: "registers=none")

    /// The last words of the names of commands that read credentials.
    private static let commands: Set<String> = ["run", "check", "doctor"]

    /// Restarts this process with the variable set if its command reads credentials: `run`, `agent run`, `account check` or `doctor`.
    ///
    /// The runtime reads the variable only when a process starts. Returns for other commands, and if the restart fails. Call this before anything
    /// else.
    static func excludeSecrets() {
        let arguments = CommandLine.arguments
        guard !commands.isDisjoint(with: arguments.dropFirst()), unsafe getenv(variable.name) == nil,
            let program = Bundle.main.executablePath
        else { return }
        _ = unsafe setenv(variable.name, variable.value, 1)
        // The original arguments, because they need not be UTF-8.
        _ = unsafe execv(program, CommandLine.unsafeArgv)
    }
}
