import SystemPackage
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The address of the control socket in a storage folder.
///
/// The path and its NUL byte must fit into 108 bytes on Linux, and into 104 bytes on other systems (unix(7)). If the path is longer, the address
/// on Linux refers to an open descriptor of the folder instead (proc(5)).
struct UnixSocketAddress {
    static let name = "control.sock"

    let folder: FilePath
    var path: FilePath { folder.appending(Self.name) }

    /// Calls a function with the address.
    ///
    /// - Throws: `Errno.fileNameTooLong` if the path is too long and the system offers no shorter path; otherwise the error from opening the folder,
    ///   or from the function.
    func withAddress<Result>(
        _ body: (UnsafePointer<sockaddr>, socklen_t) throws(Errno) -> Result
    ) throws(Errno) -> Result {
        if path.bytes.count < Self.capacity { return try unsafe Self.withAddress(of: path.bytes, body) }
        #if os(Linux)
            let descriptor: FileDescriptor
            do {
                descriptor = try FileDescriptor.open(folder, .readOnly, options: [.directory, .closeOnExec])
            } catch let error as Errno {
                throw error
            } catch {
                throw .invalidArgument
            }
            defer { try? descriptor.close() }
            return try unsafe Self.withAddress(of: Array("/proc/self/fd/\(descriptor.rawValue)/\(Self.name)".utf8), body)
        #else
            throw .fileNameTooLong
        #endif
    }

    private static var capacity: Int {
        let address = sockaddr_un()
        return MemoryLayout.size(ofValue: address.sun_path)
    }

    /// - Parameter path: A path shorter than the capacity.
    private static func withAddress<Result>(
        of path: [UInt8], _ body: (UnsafePointer<sockaddr>, socklen_t) throws(Errno) -> Result
    ) throws(Errno) -> Result {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { field in
            unsafe field.copyBytes(from: path)
        }
        return try unsafe withUnsafePointer(to: &address) { pointer throws(Errno) in
            try unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer throws(Errno) in
                try unsafe body(pointer, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}

extension Errno {
    static var last: Errno { Errno(rawValue: errno) }
}
