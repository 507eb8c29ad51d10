import Foundation
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Finds the storage folder of the queue.
enum FolderLocation {
    /// Returns the value of `--store`. Without this option, returns `$TRANSFERQ_STORE`. If neither is set, returns `transferq` in the state
    /// folder of the XDG Base Directory Specification 0.8.
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
        if let folder = variable("TRANSFERQ_STORE") { return folder.absolute }
        // The specification says to ignore relative paths in this variable.
        if let state = variable("XDG_STATE_HOME"), state.isAbsolute { return state.appending("transferq") }
        let home = variable("HOME") ?? FilePath(NSHomeDirectory())
        return home.absolute.appending(".local").appending("state").appending("transferq")
    }

    private static func variable(_ name: String) -> FilePath? {
        guard let path = unsafe getenv(name).map({ unsafe FilePath(platformString: $0) }), !path.isEmpty else { return nil }
        return path
    }
}
