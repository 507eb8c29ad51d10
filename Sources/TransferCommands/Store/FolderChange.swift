import Foundation
import SystemPackage

/// Waits until another process changes a storage folder, without opening the queue.
struct FolderChange {
    private static let interval = Duration.milliseconds(200)

    private let folder: FilePath
    private let before: [String: Date]

    /// Records the current state of the folder.
    init(in folder: FilePath) {
        self.folder = folder
        before = Self.times(in: folder)
    }

    /// Waits until the folder differs from the recorded state: a file was created, removed or written.
    ///
    /// - Throws: `CancellationError`.
    func wait() async throws {
        while Self.times(in: folder) == before { try await Task.sleep(for: Self.interval) }
    }

    private static func times(in folder: FilePath) -> [String: Date] {
        let files = FileManager.default
        let names = (try? files.contentsOfDirectory(atPath: folder.string)) ?? []
        return names.reduce(into: [:]) { times, name in
            times[name] = (try? files.attributesOfItem(atPath: folder.appending(name).string))?[.modificationDate] as? Date
        }
    }
}
