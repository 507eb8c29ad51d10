import Foundation
import SystemPackage
import TransferKit

/// The program `transferq-fleet`, which contains the PostgreSQL client. Only commands that work on a fleet need this client. A fleet is a queue in a
/// PostgreSQL database. Processes on several hosts run this queue together.
enum FleetProgram {
    /// Whether a command works on a fleet: it has the option `--fleet`, or the environment variable `TRANSFERQ_FLEET` is set.
    static func isNeeded(for arguments: [String]) -> Bool {
        let options = arguments.prefix { $0 != "--" }
        return options.contains { $0 == "--fleet" || $0.hasPrefix("--fleet=") } || Storage.variable("TRANSFERQ_FLEET") != nil
    }

    /// Replaces this process with the program. Returns only if the program can't be started.
    static func replaceProcess(_ arguments: [String]) -> CommandFailure {
        let program = AgentLaunch.executable.removingLastComponent().appending("transferq-fleet")
        let error = WebCommand.replaceProcess(program, arguments.map { ProcessArguments.bytes(of: $0) })
        return CommandFailure(.storage, "Cannot start \(program): \(error). Install transferq-fleet in the folder of transferq.")
    }
}
