import Foundation
import SystemPackage

/// Waits until another process does something with a store, without a part in it.
struct StoreChange {
    private static let interval = Duration.milliseconds(200)

    private let folder: FilePath
    private let before: [String: Date]

    /// Looks at the store as it is now.
    init(in folder: FilePath) {
        self.folder = folder
        before = Self.times(in: folder)
    }

    /// Returns when a file of it was made, removed or written since.
    ///
    /// - Throws: `CancellationError`.
    func wait() async throws {
        while Self.times(in: folder) == before { try await Task.sleep(for: Self.interval) }
    }

    /// When each file changed last, by its name.
    private static func times(in folder: FilePath) -> [String: Date] {
        let files = FileManager.default
        let names = (try? files.contentsOfDirectory(atPath: folder.string)) ?? []
        return names.reduce(into: [:]) { times, name in
            times[name] = (try? files.attributesOfItem(atPath: folder.appending(name).string))?[.modificationDate] as? Date
        }
    }
}
