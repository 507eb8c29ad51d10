import SystemPackage
import TransferCore

/// What a person gives by a pipe.
enum StandardInput {
    /// Reads all of it.
    ///
    /// - Parameter what: What is to be there, for a person.
    static func read(_ what: String) async throws(CommandFailure) -> [UInt8] {
        try await BlockingWork.run { () throws(CommandFailure) in try readNow(what) }
    }

    private static func readNow(_ what: String) throws(CommandFailure) -> [UInt8] {
        do {
            var bytes: [UInt8] = []
            var part = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = try unsafe part.withUnsafeMutableBytes { unsafe try FileDescriptor.standardInput.read(into: $0) }
                if count == 0 { return bytes }
                bytes += part.prefix(count)
            }
        } catch Errno.badFileDescriptor {
            throw CommandFailure(.usage, "There are no \(what) to read, as standard input is closed; nothing was added.")
        } catch {
            throw CommandFailure(.usage, "Standard input can't be read: \(error). Nothing was added.")
        }
    }
}
