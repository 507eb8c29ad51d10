import Locking
import Logging

/// A log handler that keeps all messages, counts the warnings, and lists the texts of the errors.
struct CountingLog: LogHandler {
    let warnings: Locked<Int>
    let errors = Locked<[String]>([])
    let messages = Locked<[(level: Logger.Level, text: String, metadata: [String: String])]>([])
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    init(warnings: Locked<Int>) {
        self.warnings = warnings
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { $1 }.mapValues { "\($0)" }
        messages.withLock { $0.append((event.level, "\(event.message)", all)) }
        if event.level == .error { errors.withLock { $0.append("\(event.message)") } }
        if event.level == .warning { warnings.withLock { $0 += 1 } }
    }
}
