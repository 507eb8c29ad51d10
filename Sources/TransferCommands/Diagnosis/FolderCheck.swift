import SystemPackage
import TransferKit
import TransferOutput

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

enum FolderCheck {
    /// Checks that only this user can access the folder, because anyone who knows the upload URLs in the folder can write to those uploads.
    /// Blocks.
    ///
    /// - Returns: The finding; nil if the folder does not exist yet. The queue creates a missing folder with the correct permissions.
    static func finding(_ folder: FilePath) -> Finding? {
        var status = stat()
        guard unsafe folder.withPlatformString({ unsafe stat($0, &status) }) == 0 else { return nil }
        let mode = status.st_mode & 0o7777
        let octal = String(mode, radix: 8)
        let fields: [(name: String, value: JSONValue)] = [("folder", .string(folder.string)), ("mode", .string(octal))]
        if status.st_uid != geteuid() {
            return Finding(
                check: "permissions", state: .wrong,
                detail:
                    "\(folder) belongs to another user (user ID \(status.st_uid)). Use a storage folder of your own: transferq --store FOLDER",
                fields: fields)
        }
        if mode & 0o077 != 0 {
            return Finding(
                check: "permissions", state: .wrong,
                detail: "\(folder) is accessible to other users (mode \(octal)). To fix it: chmod 700 \(folder.string.shellWord)",
                fields: fields)
        }
        return Finding(
            check: "permissions", state: .ok, detail: "\(folder) is accessible to its owner only (mode \(octal)).", fields: fields)
    }

    /// Compares the free space on the folder's disk with the minimum that sessions need to start. Blocks.
    ///
    /// - Parameter floor: The minimum in bytes.
    /// - Returns: The finding; nil if the free space is unknown.
    static func diskFinding(_ folder: FilePath, floor: Int64) -> Finding? {
        guard let free = QueueConfiguration().freeSpace(folder) else { return nil }
        let fields: [(name: String, value: JSONValue)] = [("free", .integer(free)), ("floor", .integer(floor))]
        guard free < floor else {
            return Finding(
                check: "disk", state: .ok,
                detail: "\(Figures.size(free)) free on the storage folder's disk; sessions need at least \(Figures.size(floor)) to start.",
                fields: fields)
        }
        return Finding(
            check: "disk", state: .wrong,
            detail:
                "\(Figures.size(free)) free on the storage folder's disk; no session starts below \(Figures.size(floor)). Free some space, or lower the minimum: transferq queue set --min-free SIZE",
            fields: fields)
    }
}
