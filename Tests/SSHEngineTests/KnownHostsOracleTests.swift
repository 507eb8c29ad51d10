import Crypto
import Foundation
import ProcessFixture
import SSHEngine
import ScriptedHTTP
import Testing

/// Verifies that the engine interprets known hosts files like `ssh-keygen -F`.
@Suite struct KnownHostsOracleTests {
    /// The line numbers of a file's entries that match a host.
    private struct Lines: Equatable, CustomStringConvertible {
        var plain: [Int] = []
        var revoked: [Int] = []
        var authorities: [Int] = []

        var description: String { "plain \(plain), revoked \(revoked), authorities \(authorities)" }
    }

    private static let keys = [
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPybyeaPpvUfIKCxplAWDg8+Ncgj6RLuH8Hs4WMwHjB1",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPhufLR5wJvl32QWEHlT8+u+mjzUbD7NsarJhfD5XSZ2",
        "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBBLL3kJeIk7xbvHdh8TK16ZYYFcOnRAa2gToUMDftCj3Tb8h3YRultsWvSN2DYoUlZNwJzOXwoQPAkzd0+Q7dDA=",
    ]
    /// A host key that the generated files do not contain.
    private static let otherKey = "AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ"
    private static let hosts = [
        ("example.com", 22), ("a.example.com", 22), ("example.com", 2222), ("b", 22), ("10.0.0.1", 22), ("::1", 22),
    ]
    private static let patterns = [
        "example.com", "EXAMPLE.com", "*.example.com", "*", "?", "b", "10.0.0.?", "10.0.0.1", "::1", "[example.com]:2222", "[*]:2222",
        "[example.com]:22", "!b", "!*.example.com", "!example.com", "*example*", "**", "a?example.com", "",
        "\u{301}x", "!\u{301}x", "\u{212A}",
    ]

    @Test(arguments: 0..<16) func `each line has the same meaning as for ssh-keygen`(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        let content = (0..<40).map { _ in Self.line(&generator) }.joined(separator: "\n") + "\n"
        let file = FileManager.default.temporaryDirectory.appending(path: "known-hosts-\(UUID().uuidString)")
        try Data(content.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let lines = content.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map(Array.init)
        for (host, port) in Self.hosts {
            let expected = try Self.linesFoundBySSHKeygen(port == 22 ? host : "[\(host)]:\(port)", file)
            let found = try Self.lines(lines, of: HostName(host, port: UInt16(port)))
            #expect(found == expected, "\(host):\(port) in:\n\(content)")
        }
    }

    private static func line(_ generator: inout SplitMix) -> String {
        func pick<Element>(_ choices: [Element]) -> Element { choices[Int.random(in: choices.indices, using: &generator)] }
        let names = (0..<Int.random(in: 1...3, using: &generator)).map { _ in pick(patterns) }.joined(separator: ",")
        let hashed = Int.random(in: 0..<4, using: &generator) == 0 ? hash(pick(["example.com", "[example.com]:2222", "b", "::1"])) : names
        let marker = pick(["", "", "", "", "@revoked ", "@cert-authority ", "@unheard-of "])
        let blank = pick([" ", "  ", "\t", " \t "])
        let key = pick(keys)
        return switch Int.random(in: 0..<12, using: &generator) {
        case 0: "# \(hashed) \(key)"
        case 1: pick(["", "  ", "\t", hashed])
        case 2: "  \(marker)\(hashed) \(key)"
        case 3: "\(marker)\(hashed)\(blank)\(key.replacing(" ", with: blank))\(blank)a comment # with a hash"
        case 4: "\(marker)\(hashed) \(key)\r"
        default: "\(marker)\(hashed)\(blank)\(key)"
        }
    }

    private static func hash(_ name: String) -> String {
        let salt = Data((0..<20).map { UInt8($0) })
        let code = HMAC<Insecure.SHA1>.authenticationCode(for: Data(name.utf8), using: SymmetricKey(data: salt))
        return "|1|\(salt.base64EncodedString())|\(Data(code).base64EncodedString())"
    }

    /// Runs ssh-keygen(1), which prints lines of the form `# Host example.com found: line 3 REVOKED`.
    private static func linesFoundBySSHKeygen(_ host: String, _ file: URL) throws -> Lines {
        let (_, output) = try StartedProgram.run("/usr/bin/ssh-keygen", ["-F", host, "-f", file.path])
        var lines = Lines()
        for text in String(decoding: output, as: UTF8.self).split(whereSeparator: \.isNewline) where text.hasPrefix("# Host ") {
            let words = text.split(separator: " ")
            let at = try #require(words.lastIndex(of: "line"))
            let line = try #require(Int(words[at + 1]))
            switch words.dropFirst(at + 2).first {
            case "REVOKED": lines.revoked.append(line)
            case "CA": lines.authorities.append(line)
            default: lines.plain.append(line)
            }
        }
        return lines
    }

    /// Evaluates each line separately, because a verdict names only one of several matching lines.
    private static func lines(_ content: [[UInt8]], of host: HostName) throws -> Lines {
        let bytes = try #require(Data(base64Encoded: otherKey))
        let other = try #require(HostKey([UInt8](bytes)))
        var lines = Lines()
        for (index, line) in content.enumerated() {
            var known = KnownHosts()
            known.add(line, file: "known_hosts")
            guard let entry = known.entries.first else { continue }
            if case .revoked = known.verdict(on: entry.key, of: host) {
                lines.revoked.append(index + 1)
                continue
            }
            switch known.verdict(on: other, of: host) {
            case .otherKeys: lines.plain.append(index + 1)
            case .certificateAuthority: lines.authorities.append(index + 1)
            case .known, .revoked, .unknown: break
            }
        }
        return lines
    }
}
