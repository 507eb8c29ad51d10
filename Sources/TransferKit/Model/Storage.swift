import Foundation
public import SystemPackage
public import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The location of a queue's state.
public struct Storage: Sendable {
    /// The folder; nil for ``inMemory``.
    package let folder: FilePath?
    /// The base folder; see ``folder(_:base:ownerTimeout:)``.
    package let base: FilePath?
    /// The name of the queue in the log.
    var name: String { folder.map { "\($0)" } ?? "in memory" }
    package let ownerTimeout: Duration

    /// A storage folder for the queue. Opening the queue creates the folder with mode 0700 if it does not exist. Only one queue can own the
    /// folder at a time.
    ///
    /// - Parameters:
    ///   - folder: The folder.
    ///   - base: The base folder of the queue, an absolute path. The queue resolves relative local paths of new sessions against this
    ///     folder. The base folder may move between launches, as an app's container does: the queue still finds the local files below it.
    ///     If nil, the queue uses the base folder with which it was last opened. Without any base folder, the queue resolves relative paths
    ///     against the working directory in which it was opened.
    ///   - ownerTimeout: How long to wait for the current owner to release the folder. The wait restarts if another process acquires the folder
    ///     first. Default: no wait.
    public static func folder(
        _ folder: some LocalPathConvertible, base: (some LocalPathConvertible)? = FilePath?.none, ownerTimeout: Duration = .zero
    ) -> Storage {
        Storage(folder: folder.filePath, base: base?.filePath, ownerTimeout: ownerTimeout)
    }

    /// The usual folder for the state of an app or a service, by its name: `~/Library/Application Support/NAME/transfers` on Apple's systems;
    /// elsewhere `$XDG_STATE_HOME/NAME`, or `~/.local/state/NAME` without this variable (XDG Base Directory Specification 0.8).
    ///
    /// - Parameters:
    ///   - name: A name that no other program uses, such as `com.example.uploader`. It must be the same at each launch.
    ///   - base: The base folder, as for ``folder(_:base:ownerTimeout:)``. If nil, on iOS, tvOS, watchOS and visionOS: the app's container, which
    ///     moves when the app is updated.
    ///   - ownerTimeout: See ``folder(_:base:ownerTimeout:)``.
    public static func application(
        _ name: String, base: (some LocalPathConvertible)? = FilePath?.none, ownerTimeout: Duration = .zero
    ) -> Storage {
        #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
            let base = base?.filePath ?? FilePath(NSHomeDirectory())
        #endif
        return .folder(stateFolder(of: name), base: base, ownerTimeout: ownerTimeout)
    }

    /// A location in memory, for tests, and for transfers that need not survive the process. Each queue with this location starts empty.
    ///
    /// The queue works as with a folder, but writes nothing to a disk. Its state, in-memory data, streams and copies are files in an in-memory file
    /// system (tmpfs(5)): `/dev/shm`, or otherwise `$XDG_RUNTIME_DIR`. Only the user of this process can read them. Without such a file system,
    /// opening the queue fails with the code `storageUnavailable`. On Apple's systems, the files are in the temporary folder on disk instead.
    ///
    /// The files are removed by ``TransferQueue/shutdown()``, or when the queue is deallocated. After a crash or a kill, the files use memory until
    /// this user opens the next queue with this location, or the machine restarts. No queue reads them again.
    ///
    /// - Important: The file system limits the size of the data. In a container, `/dev/shm` often has only 64 MiB (`docker run --shm-size`). The
    ///   system may move its content to a swap disk. When a user logs out, systemd removes the user's files from `/dev/shm` and
    ///   `$XDG_RUNTIME_DIR`, even if the process that uses them continues. Enable lingering for the user to prevent this (loginctl(1),
    ///   RemoveIPC in logind.conf(5)).
    public static let inMemory = Storage(folder: nil, base: nil, ownerTimeout: .zero)

    private static func stateFolder(of name: String) -> FilePath {
        #if canImport(Darwin)
            FilePath(NSHomeDirectory()).appending("Library/Application Support").appending(name).appending("transfers")
        #else
            xdgStateFolder(of: name)
        #endif
    }

    /// The folder for the state of a program according to the XDG Base Directory Specification 0.8.
    package static func xdgStateFolder(of name: String) -> FilePath {
        // The specification requires programs to ignore relative paths in this variable.
        if let state = variable("XDG_STATE_HOME"), state.isAbsolute { return state.appending(name) }
        let home = variable("HOME") ?? FilePath(NSHomeDirectory())
        return home.appending(".local").appending("state").appending(name)
    }

    /// The path in an environment variable; nil if the variable is unset or empty.
    package static func variable(_ name: String) -> FilePath? {
        guard let path = unsafe getenv(name).map({ unsafe FilePath(platformString: $0) }), !path.isEmpty else { return nil }
        return path
    }
}
