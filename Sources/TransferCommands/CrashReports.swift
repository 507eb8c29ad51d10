import Foundation
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What Swift's runtime writes when this program crashes.
public enum CrashReports: Sendable {
    /// Nothing of the registers, nor of the memory that they point to, which may hold a secret. A variable of that name which is set already
    /// comes first.
    static let variable = (name: "SWIFT_BACKTRACE", value: "registers=none")

    /// The last words of the commands that read credentials.
    private static let commands: Set<String> = ["run", "check", "doctor"]

    /// Begins this process anew with that variable, as the runtime looks at it when a process begins, if it may read credentials: for the commands
    /// `run`, `agent run`, `account check` and `doctor`. Returns in all other cases, and if it can't be done.
    ///
    /// To be called before anything else.
    public static func leaveSecretsOut() {
        let arguments = CommandLine.arguments
        guard !commands.isDisjoint(with: arguments.dropFirst()), unsafe getenv(variable.name) == nil,
            let program = Bundle.main.executablePath
        else { return }
        _ = unsafe setenv(variable.name, variable.value, 1)
        // The arguments as they came: not all of them need be UTF-8.
        _ = unsafe execv(program, CommandLine.unsafeArgv)
    }
}
