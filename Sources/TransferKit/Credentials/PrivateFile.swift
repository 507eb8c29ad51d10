package import SystemPackage
package import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Reads files that hold secrets: only their owner may be able to read them.
package enum PrivateFile {
    /// Reads all of a regular file, or of a pipe once its other end is closed. Blocks.
    ///
    /// - Parameters:
    ///   - path: Where it is.
    ///   - what: What errors call it, as `credential file`.
    ///   - limit: The most bytes that it may have.
    /// - Throws: A ``TransferError`` of the class `credentials` that names the file, and nothing of what is in it.
    package static func read(_ path: FilePath, as what: String, limit: Int) throws(TransferError) -> [UInt8] {
        let name = "The \(what) \(path)"
        do {
            // Before it is opened: opening a device may do something, or wait for ever.
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
            throw unavailable("\(name) is neither a file nor a pipe; name one.")
        }
        guard status.permissions.isDisjoint(with: [.groupReadWriteExecute, .otherReadWriteExecute]) else {
            throw unavailable("\(name) is open to others; run `chmod 600 \(path)`.")
        }
    }

    private static func read(_ file: FileDescriptor, _ name: String, limit: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = try unsafe part.withUnsafeMutableBytes { unsafe try file.read(into: $0) }
            if count == 0 { return bytes }
            bytes += part.prefix(count)
            guard bytes.count <= limit else { throw unavailable("\(name) has more than the \(limit) bytes that it may have.") }
        }
    }

    private static func unavailable(_ message: String) -> TransferError {
        TransferError(.credentials, .credentialsUnavailable, message)
    }
}
