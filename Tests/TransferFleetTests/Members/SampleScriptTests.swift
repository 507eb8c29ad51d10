import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferKit

@Suite(.timeLimit(.minutes(3))) struct SampleScriptTests {
    @Test func `the sample kills a member, and all files arrive`() async throws {
        let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent().removingLastComponent()
        let programs = FilePath(MemberFixture.program).removingLastComponent().string
        let result = try await BlockingIO.run {
            try StartedProgram.run(
                root.appending("Samples").appending("fleet").string, ["8M"], environment: ["TRANSFERQ_PROGRAMS": programs])
        }
        let lines = String(decoding: result.output, as: UTF8.self).split(separator: "\n").map(String.init)
        #expect(result.status == 0, "\(lines)")
        #expect(lines.last == "All 6 files arrived exactly once, and the checksums match.", "\(lines)")
        #expect(lines.contains { $0.hasPrefix("Killing the member a.") })
        // The killed member had a session, which another member completed.
        #expect(lines.contains("a: live, 1 of 1 slots in use") && lines.contains("a: gone, 0 of 1 slots in use"), "\(lines)")
    }
}
