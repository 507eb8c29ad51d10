import SystemPackage
import TransferKit

enum FolderLocation {
    /// Returns the value of `--store`. Without this option, returns `$TRANSFERQ_STORE`. If neither is set, returns `transferq` in the state
    /// folder of the XDG Base Directory Specification 0.8. The returned path is absolute.
    ///
    /// - Throws: A `CommandFailure` if the path is empty or not UTF-8.
    static func folder(option: FilePath?) throws(CommandFailure) -> FilePath {
        let folder = try chosen(option: option)
        guard FilePath(folder.string) == folder else {
            throw CommandFailure(.usage, "The path of the storage folder, \(folder), is not UTF-8. Choose another folder.")
        }
        return folder
    }

    private static func chosen(option: FilePath?) throws(CommandFailure) -> FilePath {
        if let option {
            guard !option.isEmpty else { throw CommandFailure(.usage, "--store needs the path of a folder.") }
            return option.absolute
        }
        if let folder = Storage.variable("TRANSFERQ_STORE") { return folder.absolute }
        return Storage.xdgStateFolder(of: "transferq").absolute
    }
}
