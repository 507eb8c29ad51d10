import Logging
import TransferKit
import TransferOutput

/// Writes log messages to the terminal, above any progress bars.
struct TerminalLogHandler: LogHandler {
    let terminal: Terminal
    var logLevel = Logger.Level.warning
    var metadata: Logger.Metadata = [:]
    var reportedSessions = ReportedSessions.none

    init(terminal: Terminal) {
        self.terminal = terminal
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        if event.level == .error, let session = all["session"]?.description, reportedSessions.contains(session) { return }
        // A message about a blocked account has no metadata other than these keys. The command prints the account's error itself, with advice.
        if reportedSessions.isAll, event.level >= .warning, all["account"] != nil, Set(all.keys).isSubset(of: ["account", "queue"]) {
            return
        }
        let details = all.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        terminal.post("transferq: \(event.level): \(event.message)\(details)".withoutControlCharacters)
    }
}

/// Sessions whose errors a command reports itself, so the log must not repeat them.
enum ReportedSessions: Sendable {
    case none
    case one(SessionID)
    case all

    /// Whether the command also reports the errors of accounts.
    fileprivate var isAll: Bool { if case .all = self { true } else { false } }

    fileprivate func contains(_ session: String) -> Bool {
        switch self {
        case .none: false
        case .one(let id): id.description == session
        case .all: true
        }
    }
}
