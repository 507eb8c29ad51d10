import Foundation
import SystemPackage
import Testing

@Suite struct ScriptUsageTests {
    @Test(arguments: [[], ["root"], ["root", "--bind", "/a"], ["root", "--bind", "/a", "/b"], ["root", "--"], ["root", "true"]])
    func enterRootPrintsUsage(arguments: [String]) async throws {
        let program = try TransferQ()
        let script = FilePath(FileManager.default.currentDirectoryPath).pushing("Tests/enter-root")
        let result = try await program.start(script, arguments.map { Array($0.utf8) }).result()
        #expect(result.status == 2 && result.diagnostics.hasPrefix("Usage: Tests/enter-root ROOT "), "\(result.testDescription)")
        #expect(!FileManager.default.fileExists(atPath: program.folder.path.appending("root").string))
    }
}
