import ArgumentParser
import Foundation
import Logging
import SystemPackage
import TransferControl
import TransferKit

enum Candidates {
    static let accounts = CompletionKind.custom { words, _, prefix in
        await find(words, prefix) { queue in try await queue.accounts().map(\.account.name) }
    }

    static let sessions = CompletionKind.custom { words, _, prefix in
        await find(words, prefix) { queue in try await queue.sessionIDs(beginningWith: prefix, limit: limit).map(\.description) }
    }

    static let tags = CompletionKind.custom { words, _, prefix in
        await find(words, prefix) { queue in
            var tags: Set<String> = []
            try await queue.forEachSession { session in
                tags.formUnion(session.tags)
                return true
            }
            return tags.sorted()
        }
    }

    private static let limit = 1_000

    /// Looks up completions in the queue.
    ///
    /// Returns no completions if there is no queue yet. The shell must stay responsive, so this method also returns no completions if the
    /// queue's owner does not respond within a second.
    ///
    /// - Parameters:
    ///   - words: The words of the unfinished command.
    ///   - prefix: The beginning of the word to complete.
    ///   - lookUp: Returns candidates, which may include words without the prefix.
    private static func find(
        _ words: [String], _ prefix: String, in lookUp: (any ControllableQueue) async throws -> [String]
    ) async -> [String] {
        guard let folder = try? FolderLocation.folder(option: store(in: words)),
            FileManager.default.fileExists(atPath: folder.appending("queue.sqlite").string)
        else { return [] }
        let found: [String]
        let remote = RemoteTransferQueue(folder: folder, timeout: .seconds(1))
        if (try? await remote.owner()) != nil {
            found = (try? await lookUp(remote)) ?? []
        } else {
            guard
                let queue = try? await TransferQueue(
                    storage: .folder(folder), transports: [],
                    configuration: QueueConfiguration(logger: Logger(label: "transferq", factory: { _ in SwiftLogNoOpLogHandler() })))
            else { return [] }
            found = (try? await lookUp(queue)) ?? []
            await queue.shutdown()
        }
        return Array(found.lazy.filter { $0.hasPrefix(prefix) }.prefix(limit))
    }

    private static func store(in words: [String]) -> FilePath? {
        for (index, word) in words.enumerated() {
            if word == "--store", words.indices.contains(index + 1) { return PathArgument(argument: words[index + 1])?.path }
            if word.hasPrefix("--store=") { return PathArgument(argument: String(word.dropFirst("--store=".count)))?.path }
        }
        return nil
    }
}
