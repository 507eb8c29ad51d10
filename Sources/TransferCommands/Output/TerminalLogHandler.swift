import Logging

/// Writes log messages to the terminal, above any progress bars.
struct TerminalLogHandler: LogHandler {
    let terminal: Terminal
    var logLevel = Logger.Level.warning
    var metadata: Logger.Metadata = [:]

    init(terminal: Terminal) {
        self.terminal = terminal
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        let details = all.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        terminal.post("transferq: \(event.level): \(event.message)\(details)".withoutControlCharacters)
    }
}
