import Foundation
import SystemPackage
import Testing
import TransferCommands

/// The command whose output `transferq stream` sends.
@Suite struct ProducerCommandTests {
    /// Without a thread that waits for the command, the command does not start.
    @Test func failsWithoutThread() throws {
        let command = try ProducerCommand("echo started")
        defer { try? command.output.close() }
        let failure = #expect(throws: CommandFailure.self) {
            try command.start { _ throws(Errno) in throw Errno.resourceTemporarilyUnavailable }
        }
        #expect(failure?.message.hasPrefix("Cannot create a thread") == true, "\(failure?.message ?? "")")
        var bytes: [UInt8] = [0]
        let count = try unsafe bytes.withUnsafeMutableBytes { unsafe try command.output.read(into: $0) }
        #expect(count == 0)
    }
}
