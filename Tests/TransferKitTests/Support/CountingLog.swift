import Locking
import Logging

/// Counts the warnings of a log, and keeps its errors.
struct CountingLog: LogHandler {
    let warnings: Locked<Int>
    let errors = Locked<[String]>([])
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
        if event.level == .error { errors.withLock { $0.append("\(event.message)") } }
        if event.level == .warning { warnings.withLock { $0 += 1 } }
    }
}
