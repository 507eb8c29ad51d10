import ArgumentParser
import TransferKit

/// A property that `set --clear` removes from sessions. The raw value is the argument of `--clear`: the option that sets the property, without its
/// dashes, except for ``tags``.
enum ClearedProperty: String, CaseIterable, ExpressibleByArgument {
    case after, checksum, chunk, context, creationURL = "creation-url", deadline, giveUpAfter = "give-up-after", notBefore = "not-before"
    case parallel, tags

    /// Empty, because the help text of `--clear` already lists the values.
    static var allValueStrings: [String] { [] }

    var option: String { self == .tags ? "--set-tag" : "--\(rawValue)" }

    func isChanged(by update: SessionUpdate) -> Bool {
        switch self {
        case .after: update.dependency != nil
        case .checksum: update.expectedChecksum != nil
        case .chunk: update.chunkSize != nil
        case .context: update.context != nil
        case .creationURL: update.creationURL != nil
        case .deadline: update.deadline != nil
        case .giveUpAfter: update.retry != nil
        case .notBefore: update.notBefore != nil
        case .parallel: update.filesInFlight != nil
        case .tags: update.tags != nil
        }
    }

    func clear(in update: inout SessionUpdate) {
        switch self {
        case .after: update.dependency = .remove
        case .checksum: update.expectedChecksum = .remove
        case .chunk: update.chunkSize = .remove
        case .context: update.context = .remove
        case .creationURL: update.creationURL = .remove
        case .deadline: update.deadline = .remove
        case .giveUpAfter: update.retry = RetryPolicy()
        case .notBefore: update.notBefore = .remove
        case .parallel: (update.filesInFlight, update.segmentsPerFile) = (.remove, 1)
        case .tags: update.tags = []
        }
    }
}
