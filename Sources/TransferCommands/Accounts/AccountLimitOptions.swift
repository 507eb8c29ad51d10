import ArgumentParser
import TransferKit

/// The limits of an account.
struct AccountLimitOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("How many of its sessions may run at once; 0 for no limit of its own.", valueName: "number"))
    var maxSessions: Int?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Bytes per second for all of its sessions, with K, M or G for the binary units; 0 for no limit.", valueName: "rate"))
    var rate: ByteCount?

    func validate() throws {
        if let maxSessions, maxSessions < 0 { throw ValidationError("--max-sessions takes a number from 0 on, and not \(maxSessions).") }
    }

    /// Sets what was given, and leaves the rest.
    func apply(to account: inout Account) {
        if let maxSessions { account.sessionLimit = maxSessions == 0 ? nil : maxSessions }
        if let rate { account.rateLimit = rate.limit }
    }
}
