import Logging

/// Writes log messages to the terminal, above any progress bars.
struct TerminalLogHandler: LogHandler {
    let terminal: Terminal
    var logLevel = Logger.Level.warning
    var metadata: Logger.Metadata = [:]
    /// The ID of a session whose errors the command reports itself; nil to log the errors of all sessions.
    var reportedSession: String?

    init(terminal: Terminal) {
        self.terminal = terminal
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        if event.level == .error, let reportedSession, all["session"]?.description == reportedSession { return }
        let details = all.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        terminal.post("transferq: \(event.level): \(event.message)\(details)".withoutControlCharacters)
    }
}
