import Foundation
import SystemPackage
import Testing

/// Text from file names, servers and apps can't control the terminal, whether printed as JSON or as a table.
@Suite struct ControlCharacterTests {
    private static let name = "a\u{85}b\u{9B}31mc\u{202E}d\u{2066}e\u{200F}f\u{1B}]0;g"

    @Test(arguments: [[], ["--json"]]) func removesControlCharacters(options: [String]) async throws {
        let program = try TransferQ()
        try program.folder.file(Self.name, size: 1)
        try await program.succeed("account", "add", "studio", "https://one.example/")
        let context = "{\"k\u{202E}\":\"\u{9B}31m\"}"
        let id = try await program.succeed("add", "studio", Self.name, "--context", context).lines[0]
        for command in [["list"], ["show", id]] {
            let shown = try await program.run(command + options)
            #expect(shown.status == 0, "\(shown.testDescription)")
            let controls = shown.output.unicodeScalars.filter { scalar in
                scalar != "\n" && [.control, .format].contains(scalar.properties.generalCategory)
            }
            #expect(controls.isEmpty, "\(controls.map { String($0.value, radix: 16) })")
            guard !options.isEmpty else { continue }
            // JSON escapes preserve the text.
            let session = try #require(try shown.objects().first)
            #expect(session["name"] as? String == Self.name)
            #expect(session["context"] as? [String: String] == ["k\u{202E}": "\u{9B}31m"])
        }
    }
}
