import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A known hosts file. Its methods block. Used on the connection's thread.
struct KnownHostsFile {
    let path: FilePath

    private static let sizeLimit = 32 << 20

    /// Returns the content; nil if the file does not exist.
    ///
    /// - Throws: A `TransferError` of the class `trust` if the file can't be read, or is larger than 32 MiB.
    func read() throws(TransferError) -> [UInt8]? {
        do {
            // Without O_NONBLOCK, opening a FIFO would wait for a writer.
            let file = try FileDescriptor.open(path, .readOnly, options: [.nonBlocking, .closeOnExec])
            return try file.closeAfter { try file.readAll(limit: Self.sizeLimit) }
        } catch Errno.noSuchFileOrDirectory, Errno.notDirectory {
            return nil
        } catch {
            throw TransferError(.trust, .notReadable, "The known hosts file \(path) can't be read.", cause: "\(error)")
        }
    }

    /// Appends a line. Creates the file and its folder if needed. Uses a single write, so lines of concurrent processes do not mix.
    ///
    /// - Throws: A `TransferError` of the class `trust` if the file can't be changed.
    func append(_ line: String) throws(TransferError) {
        do {
            let folder = path.removingLastComponent()
            if !folder.isEmpty, unsafe folder.withPlatformString({ unsafe mkdir($0, 0o700) }) != 0, errno != EEXIST {
                throw Errno(rawValue: errno)
            }
            let file = try FileDescriptor.open(
                path, .readWrite, options: [.append, .create, .closeOnExec], permissions: .ownerReadWrite)
            try file.closeAfter {
                var last: [UInt8] = [0x0A]
                let size = try file.seek(offset: 0, from: .end)
                if size > 0 { _ = try unsafe last.withUnsafeMutableBytes { unsafe try file.read(fromAbsoluteOffset: size - 1, into: $0) } }
                try file.writeAll(Array(((last == [0x0A] ? "" : "\n") + line + "\n").utf8))
                guard fsync(file.rawValue) == 0 else { throw Errno(rawValue: errno) }
            }
        } catch {
            throw TransferError(.trust, .notWritable, "The server can't be added to the known hosts file \(path).", cause: "\(error)")
        }
    }
}

extension FileDescriptor {
    /// Reads a small file to its end.
    ///
    /// - Parameter limit: The maximum size in bytes.
    ///
    /// - Throws: The system's error, or `EFBIG` if the file exceeds the limit.
    func readAll(limit: Int) throws -> [UInt8] {
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = try unsafe buffer.withUnsafeMutableBytes { unsafe try read(into: $0) }
            guard count > 0 else { return content }
            content += buffer[..<count]
            guard content.count <= limit else { throw Errno.fileTooLarge }
        }
    }
}
