package import SystemPackage
package import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Reads files that contain secrets. Rejects files with permissions for the group or for other users.
package enum PrivateFile {
    /// Reads a regular file completely, or a pipe until its writer closes the pipe. Blocks.
    ///
    /// - Parameters:
    ///   - path: The path of the file or pipe.
    ///   - what: The kind of file, as error messages name it, for example `credential file`.
    ///   - limit: The maximum size in bytes.
    /// - Throws: A ``TransferError`` of the class `credentials`. The message names the file, but never contains the file's content.
    package static func read(_ path: FilePath, as what: String, limit: Int) throws(TransferError) -> [UInt8] {
        let name = "The \(what) \(path)"
        do {
            // Check the file before opening it, because opening a device can have side effects or block forever.
            try check(try path.stat(), path, name)
            let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
            return try file.closeAfter {
                try check(try file.stat(), path, name)
                return try read(file, name, limit: limit)
            }
        } catch let error as TransferError {
            throw error
        } catch {
            throw unavailable("\(name) can't be read: \(error).")
        }
    }

    private static func check(_ status: Stat, _ path: FilePath, _ name: String) throws(TransferError) {
        guard status.type == .regular || status.type == .fifo else {
            throw unavailable("\(name) is neither a file nor a pipe. Specify a regular file or a pipe.")
        }
        guard status.permissions.isDisjoint(with: [.groupReadWriteExecute, .otherReadWriteExecute]) else {
            throw unavailable("\(name) is accessible to other users. Run `chmod 600 \(path)`.")
        }
    }

    private static func read(_ file: FileDescriptor, _ name: String, limit: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = try unsafe buffer.withUnsafeMutableBytes { unsafe try file.read(into: $0) }
            if count == 0 { return bytes }
            bytes += buffer.prefix(count)
            guard bytes.count <= limit else { throw unavailable("\(name) has more than the \(limit) bytes allowed.") }
        }
    }

    private static func unavailable(_ message: String) -> TransferError {
        TransferError(.credentials, .credentialsUnavailable, message)
    }
}
