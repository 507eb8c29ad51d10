import Locking
package import Logging

/// A log handler that stores messages for a test.
package struct RecordedLog: LogHandler {
    private let messages = Locked<[(level: Logger.Level, message: String, metadata: [String: String])]>([])
    package var metadata: Logger.Metadata = [:]
    package var logLevel = Logger.Level.trace

    package init() {}

    package var logger: Logger { Logger(label: "test") { [self] _ in self } }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        let metadata = (event.metadata ?? [:]).mapValues { "\($0)" }
        messages.withLock { $0.append((event.level, event.message.description, metadata)) }
    }

    /// Returns the metadata of each message that begins with `message`.
    package func metadata(of message: String) -> [[String: String]] {
        messages.withLock { $0.filter { $0.message.hasPrefix(message) }.map(\.metadata) }
    }

    /// All messages with their metadata, one per line.
    package var text: String { messages.withLock { $0.map { "\($0.message) \($0.metadata)" } }.joined(separator: "\n") }
}
