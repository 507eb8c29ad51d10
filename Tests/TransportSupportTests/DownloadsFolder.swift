import Foundation
import SystemPackage
import TransferCore

/// A temporary target folder for downloads, which is deleted when this object is released.
final class DownloadsFolder: Sendable {
    let root: FilePath

    init() throws {
        root = FilePath(FileManager.default.temporaryDirectory.path).appending("transport-support-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: root.string, withIntermediateDirectories: false)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: root.string)
    }

    func destination(_ name: FilePath, _ policy: OverwritePolicy = .never) -> DownloadDestination {
        let partFile = name.removingLastComponent().appending(".\(name.lastComponent?.string ?? "").part")
        return DownloadDestination(root: root, name: name, partName: partFile, overwrite: policy)
    }

    /// The sorted names of the files and folders in the folder, or in its subfolder `path`.
    func names(_ path: FilePath = "") -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: root.pushing(path).string)) ?? []).sorted()
    }

    func text(_ name: FilePath) -> String? {
        (try? Data(contentsOf: URL(filePath: root.pushing(name).string))).map { String(decoding: $0, as: UTF8.self) }
    }

    func write(_ text: String, _ name: FilePath) throws {
        let path = root.pushing(name)
        try FileManager.default.createDirectory(atPath: path.removingLastComponent().string, withIntermediateDirectories: true)
        try Data(text.utf8).write(to: URL(filePath: path.string))
    }

    func link(_ name: FilePath, to target: String) throws {
        try FileManager.default.createSymbolicLink(atPath: root.pushing(name).string, withDestinationPath: target)
    }
}
