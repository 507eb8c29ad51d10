import Foundation
import Locking
import SystemPackage
import TransferCore

/// The uploads of the server, which are stored in one folder.
final class UploadStore: Sendable {
    private let folder: FilePath
    private let state: Locked<State>

    private struct State {
        var uploads: [String: Upload] = [:]
        var terminated: Set<String> = []
    }

    /// Opens the uploads that an earlier server stored in the folder, or creates the folder. Blocks.
    init(folder: FilePath) throws(LoopbackError) {
        self.folder = folder
        do {
            let manager = FileManager.default
            try manager.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
            var uploads: [String: Upload] = [:]
            for name in try manager.contentsOfDirectory(atPath: folder.string) where name.hasSuffix(".json") {
                guard let upload = try Upload(opening: folder.appending(name), in: folder) else { continue }
                uploads[upload.id] = upload
            }
            state = Locked(State(uploads: uploads))
        } catch {
            throw LoopbackError("Cannot use the folder \(folder) for uploads: \(error.localizedDescription)")
        }
    }

    var all: [Upload] { state.withLock { Array($0.uploads.values) } }

    enum Lookup {
        case found(Upload)
        case terminated
        case unknown
    }

    func lookUp(_ id: String) -> Lookup {
        state.withLock { state in
            if let upload = state.uploads[id] { return .found(upload) }
            return state.terminated.contains(id) ? .terminated : .unknown
        }
    }

    /// Creates an upload with the properties in `record` and a new ID. Blocks.
    func create(_ record: StoredUpload) throws -> Upload {
        var record = record
        record.id = UUID().uuidString.replacing("-", with: "").lowercased()
        let upload = try Upload(creating: record, in: folder)
        state.withLock { $0.uploads[upload.id] = upload }
        return upload
    }

    /// Returns the incomplete final uploads to which a partial upload belongs.
    func incompleteFinals(with partial: Upload) -> [Upload] {
        all.filter { $0.record.parts?.contains(partial.id) == true && !$0.isComplete }
    }

    /// Removes an upload and its files. Requires exclusive access to the upload. Blocks.
    func remove(_ upload: Upload) throws {
        try upload.remove()
        state.withLock { state in
            state.uploads[upload.id] = nil
            state.terminated.insert(upload.id)
        }
    }
}
