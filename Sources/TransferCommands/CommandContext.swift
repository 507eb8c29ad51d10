import SystemPackage

/// What a command works with besides its arguments.
struct CommandContext: Sendable {
    /// Set for the time of a command: the parser makes the commands, so nothing can be handed to them.
    @TaskLocal static var current = CommandContext(
        transports: .builtIn, output: OutputWriter(.standardOutput), terminal: Terminal(.standardError))

    let transports: RegisteredTransports
    let output: OutputWriter
    let terminal: Terminal
}
