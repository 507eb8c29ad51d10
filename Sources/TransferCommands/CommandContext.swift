import SystemPackage
import TransferKit

/// The environment of a command: its transports, its output streams, and the queue, unless the queue is in a storage folder.
struct CommandContext: Sendable {
    /// The context of the running command. The context is a task-local value, because the parser creates the commands and can't pass values
    /// to them.
    @TaskLocal static var current = CommandContext(
        transports: .builtIn, output: OutputWriter(.standardOutput), terminal: Terminal(.standardError))

    let transports: RegisteredTransports
    let output: OutputWriter
    let terminal: Terminal
    /// The queue that all commands use; nil to use the queue in the storage folder.
    var queue: (any ControllableQueue)?
}
