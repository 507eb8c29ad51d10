import Locking
import Logging

/// The messages of a log, without their metadata.
struct LogLines: LogHandler {
    private let lines = Locked<[(level: Logger.Level, text: String)]>([])
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    /// A logger that writes to this handler.
    var logger: Logger { Logger(label: "test") { [self] _ in self } }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let (level, text) = (event.level, "\(event.message)")
        lines.withLock { $0.append((level, text)) }
    }

    /// Returns the messages of the given level, or of all levels if `level` is nil.
    func texts(at level: Logger.Level? = nil) -> [String] {
        lines.withLock { $0.filter { level == nil || $0.level == level }.map(\.text) }
    }
}
