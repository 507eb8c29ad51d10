import Foundation
import Testing

/// The messages in the article "Troubleshooting" are parts of messages in the sources.
@Suite struct TroubleshootingTests {
    /// Fragments of the paths of test code, which `transferq` does not link.
    private static let testCode = ["TransportTesting/", "TUSLoopback/", "tus-loopback/", "MemoryTransport"]

    /// All sources of the programs. Interpolations and escapes stay as they are in the code.
    private static let sources: [String] = ["Sources", "Plugins"].flatMap { folder in
        let folder = Catalog.package.appending(path: folder)
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: folder.path)) ?? []
        let shipped = names.filter { name in name.hasSuffix(".swift") && !testCode.contains { name.contains($0) } }
        return shipped.compactMap { try? String(contentsOf: folder.appending(path: $0), encoding: .utf8) }
    }

    @Test func messagesExist() throws {
        let article = try String(contentsOf: Catalog.file(of: "Troubleshooting"), encoding: .utf8)
        let rows = article.split(separator: "\n").filter { $0.hasPrefix("| `") }
        #expect(rows.count > 50)
        for row in rows {
            let cell = row.components(separatedBy: " | ")[0]
            let texts = cell.components(separatedBy: "`").enumerated().filter { !$0.offset.isMultiple(of: 2) }.map(\.element)
            // All texts of a message are in the same file.
            #expect(Self.sources.contains { source in texts.allSatisfy { source.contains($0) } }, "\(cell)")
        }
    }
}
