import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension DestinationFolder {
    /// Gives the complete part file its final name, or removes the part file if the policy keeps an existing file. Then syncs the folder.
    ///
    /// - Returns: The final path; nil if the policy keeps an existing file.
    func moveToFinalName(_ descriptor: FileDescriptor, _ remote: RemoteFileState) throws(TransferError) -> FilePath? {
        let partStatus = try status(of: descriptor)
        var final = try existingFinalName(partStatus)
        if final == nil {
            if try isUpToDate(remote) {
                try unlink(partName)
            } else if destination.overwrite == .rename {
                final = try assignFreeName(partStatus)
            } else {
                final = try assignFinalName(partStatus) ? name : nil
                if final == nil { try unlink(partName) }
            }
        }
        guard fsync(folder.rawValue) == 0 else { throw .destinationUnavailable(destination.path.removingLastComponent(), errno: errno) }
        return final.map { destination.path.removingLastComponent().pushing($0) }
    }

    /// Returns the final name that an earlier attempt gave the part file; nil if the part file has no final name yet.
    func existingFinalName(_ partStatus: Status) throws(TransferError) -> FilePath? {
        if let noted = try notedName(partStatus) { return noted }
        guard destination.overwrite == .rename else { return try status(of: name)?.identity == partStatus.identity ? name : nil }
        for number in 0..<(partStatus.links > 1 ? Self.maximumNumbers : 0) {
            let candidate = Self.numbered(name, number)
            guard let found = try status(of: candidate) else { return nil }
            if found.identity == partStatus.identity { return candidate }
        }
        return nil
    }

    private static let maximumNumbers = 10_000

    /// Returns the name with a number before its extension; the name itself for 0.
    private static func numbered(_ name: FilePath, _ number: Int) -> FilePath {
        guard number > 0 else { return name }
        let bytes = name.bytes
        // The first dot of a hidden file does not begin an extension.
        let dot = bytes.lastIndex(of: UInt8(ascii: ".")).flatMap { $0 > 0 ? $0 : nil } ?? bytes.endIndex
        let suffix = Array(" (\(number))".utf8) + bytes[dot...]
        // A name has at most 255 bytes (NAME_MAX, limits.h).
        return FilePath(bytes: bytes[..<dot].prefix(max(1, 255 - suffix.count)) + suffix)
    }

    /// Gives the part file the first free name: the final name, or this name with a number.
    private func assignFreeName(_ partStatus: Status) throws(TransferError) -> FilePath {
        for number in 0..<Self.maximumNumbers {
            let candidate = Self.numbered(name, number)
            let result = link(to: candidate)
            if result == 0 { return candidate }
            if result == EEXIST { continue }
            guard Self.meansNoLinks(result) else { throw .destinationUnavailable(destination.path, errno: result) }
            if try renamePartFile(partStatus, to: candidate, replaces: false) { return candidate }
        }
        throw .fileExists(destination.path)
    }

    /// Gives the part file its final name. Returns false if the policy keeps an existing file.
    private func assignFinalName(_ partStatus: Status) throws(TransferError) -> Bool {
        if destination.overwrite == .never || destination.overwrite == .skip {
            let result = link(to: name)
            if result == 0 || result == EEXIST, try status(of: name)?.identity == partStatus.identity { return true }
            guard result == EEXIST || Self.meansNoLinks(result) else { throw .destinationUnavailable(destination.path, errno: result) }
            if result != EEXIST, try renamePartFile(partStatus, to: name, replaces: false) { return true }
            if destination.overwrite == .never { throw .fileExists(destination.path) }
            return false
        }
        // Rename a second hard link instead of the part file. The part file keeps its own name until the queue has stored the completion.
        let temporary = DownloadDestination.temporaryName(of: partName)
        try unlink(temporary)
        let result = link(to: temporary)
        guard result == 0 || Self.meansNoLinks(result) else { throw .destinationUnavailable(destination.path, errno: result) }
        guard result == 0 else { return try renamePartFile(partStatus, to: name, replaces: true) }
        do throws(TransferError) {
            try rename(temporary, to: name)
        } catch {
            try? unlink(temporary)
            throw error
        }
        return true
    }

    func rename(_ old: FilePath, to new: FilePath) throws(TransferError) {
        let result = unsafe old.withPlatformString { old in
            unsafe new.withPlatformString { unsafe renameat(folder.rawValue, old, folder.rawValue, $0) }
        }
        guard result == 0 else { throw .destinationUnavailable(destination.path, errno: errno) }
    }

    /// Creates a hard link to the part file. Returns 0 or an error number.
    private func link(to new: FilePath) -> CInt {
        if faults.refusesLinks { return EPERM }
        return unsafe partName.withPlatformString { old in
            unsafe new.withPlatformString { unsafe linkat(folder.rawValue, old, folder.rawValue, $0, 0) == 0 ? 0 : errno }
        }
    }

    /// Whether an error number means that the file can't have another hard link, for example because the file system does not support
    /// links.
    private static func meansNoLinks(_ code: CInt) -> Bool {
        [EPERM, EOPNOTSUPP, ENOSYS, EMLINK].contains(code)
    }
}
