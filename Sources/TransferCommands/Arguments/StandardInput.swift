import SystemPackage
import TransferCore
import TransferKit

enum StandardInput {
    /// Reads all bytes, until the end of the input.
    ///
    /// - Parameter what: A plural noun for the expected content, for error messages.
    /// - Throws: A `CommandFailure` if standard input is closed or can't be read.
    static func read(_ what: String) async throws(CommandFailure) -> [UInt8] {
        try await BlockingIO.run { () throws(CommandFailure) in try readNow(what) }
    }

    private static func readNow(_ what: String) throws(CommandFailure) -> [UInt8] {
        do {
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = try unsafe buffer.withUnsafeMutableBytes { unsafe try FileDescriptor.standardInput.read(into: $0) }
                if count == 0 { return bytes }
                bytes += buffer.prefix(count)
            }
        } catch Errno.badFileDescriptor {
            throw CommandFailure(.usage, "Cannot read \(what): standard input is closed. Nothing was changed.")
        } catch {
            throw CommandFailure(.usage, "Cannot read standard input: \(error). Nothing was changed.")
        }
    }
}
