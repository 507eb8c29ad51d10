public import SystemPackage
public import TransferCore

/// The location of a queue's state.
public struct Storage: Sendable {
    package let folder: FilePath
    package let base: FilePath?
    package let ownerTimeout: Duration

    /// A storage folder of the queue, created with mode 0700 if it does not exist. One process owns it at a time.
    ///
    /// - Parameters:
    ///   - folder: The folder.
    ///   - base: The absolute path of a folder that may move between launches, such as an app's container. After a move, the queue still finds
    ///     the local files below this folder. If nil, the queue uses the base with which it was last opened, if any.
    ///   - ownerTimeout: How long to wait until another owner releases the folder. If a third process acquires the folder first, the wait
    ///     starts again. Default: no wait.
    public static func folder(
        _ folder: some LocalPathConvertible, base: (some LocalPathConvertible)? = FilePath?.none, ownerTimeout: Duration = .zero
    ) -> Storage {
        Storage(folder: folder.filePath, base: base?.filePath, ownerTimeout: ownerTimeout)
    }
}
