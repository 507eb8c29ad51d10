import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTUS

/// The compiled example of the README. ``ReadmeTests`` verifies that both copies match.
// swift-format-ignore
private func readmeExample() async throws {
    // README
    // The queue logs to standard error.
    let queue = try await TransferQueue(storage: .application("uploader"), transports: [TUSTransport()])
    try await queue.save(Account("studio", endpoints: [.tus("http://127.0.0.1:8080/files/")]))

    let reel = try await queue.enqueue(.upload(["reel.mov", "notes.txt"], to: "studio"))
    try await queue.start()

    for await figures in reel.progress {
        print("\(figures.bytesSent) of \(figures.bytesKnown) bytes, \(figures.filesDone) of \(figures.files) files")
    }
    let result = try await reel.value
    print("All \(result.statistics.filesDone) files arrived.")
    await queue.shutdown()
    // README
}

@Suite struct ReadmeTests {
    private static let readme = Result { try String(contentsOf: Catalog.package.appending(path: "README.md"), encoding: .utf8) }

    /// The limit excludes code and the addresses of links.
    @Test func hasAtMostNineHundredWords() throws {
        let text = try Self.readme.get().components(separatedBy: "```").enumerated().filter { $0.offset.isMultiple(of: 2) }.map(\.element)
        let words = text.joined().replacing(#/\]\([^)]*\)/#, with: "]").split(whereSeparator: \.isWhitespace).filter { $0.contains(/\w/) }
        #expect(words.count <= 900)
    }

    @Test func linksExist() throws {
        let links = try Self.readme.get().matches(of: #/\]\(([^)#:]+)[^)]*\)/#).map { String($0.1) }.filter { !$0.hasPrefix("http") }
        #expect(links.count > 20)
        for link in links { #expect(FileManager.default.fileExists(atPath: Catalog.package.appending(path: link).path), "\(link)") }
    }

    @Test func exampleCompiles() throws {
        let source = URL(fileURLWithPath: #filePath)
        let root = source.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        let blocks = readme.components(separatedBy: "```swift\n").dropFirst().compactMap { $0.components(separatedBy: "```").first }
        let shown = try #require(blocks.first).split(separator: "\n").filter { !$0.hasPrefix("import ") }
        let compiled = try String(contentsOf: source, encoding: .utf8).components(separatedBy: "// README\n")[1]
            .split(separator: "\n").map { $0.hasPrefix("    ") ? $0.dropFirst(4) : $0 }.filter { !$0.allSatisfy(\.isWhitespace) }
        #expect(shown.map(String.init) == compiled.map(String.init))
    }
}
