import Locking
package import Logging

/// The messages of a log, without their metadata.
package struct LogLines: LogHandler {
    private let lines = Locked<[(level: Logger.Level, text: String)]>([])
    package var metadata: Logger.Metadata = [:]
    package var logLevel = Logger.Level.trace

    package init() {}

    /// A logger that writes to this handler.
    package var logger: Logger { Logger(label: "test") { [self] _ in self } }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        let (level, text) = (event.level, "\(event.message)")
        lines.withLock { $0.append((level, text)) }
    }

    /// Returns the messages of the given level, or of all levels if `level` is nil.
    package func texts(at level: Logger.Level? = nil) -> [String] {
        lines.withLock { $0.filter { level == nil || $0.level == level }.map(\.text) }
    }
}
