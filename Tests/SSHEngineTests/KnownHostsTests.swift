import Crypto
import Foundation
import SSHEngine
import SystemPackage
import Testing

struct KnownHostsTests {
    private static let key = "AAAAC3NzaC1lZDI1NTE5AAAAIPybyeaPpvUfIKCxplAWDg8+Ncgj6RLuH8Hs4WMwHjB1"
    private static let otherKey = "AAAAC3NzaC1lZDI1NTE5AAAAIPhufLR5wJvl32QWEHlT8+u+mjzUbD7NsarJhfD5XSZ2"
    private static let ecdsaKey =
        "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBBLL3kJeIk7xbvHdh8TK16ZYYFcOnRAa2gToUMDftCj3Tb8h3YRultsWvSN2DYoUlZNwJzOXwoQPAkzd0+Q7dDA="

    private static func hostKey(_ base64: String) throws -> HostKey {
        let bytes = try #require(Data(base64Encoded: base64))
        return try #require(HostKey([UInt8](bytes)))
    }

    private static func hashed(_ name: String) -> String {
        let salt = Data((0..<20).map { UInt8($0) })
        let code = HMAC<Insecure.SHA1>.authenticationCode(for: Data(name.utf8), using: SymmetricKey(data: salt))
        return "|1|\(salt.base64EncodedString())|\(Data(code).base64EncodedString())"
    }

    enum Expected: Equatable {
        case known(line: Int)
        case revoked(line: Int)
        case otherKeys(lines: [Int])
        case certificateAuthority(line: Int)
        case unknown
    }

    private static func verdict(_ text: String, host: String, port: UInt16, key: String = key) throws -> Expected {
        var known = KnownHosts()
        known.add(Array(text.utf8), file: "known_hosts")
        switch known.verdict(on: try hostKey(key), of: HostName(host, port: port)) {
        case .known(let entry): return .known(line: entry.line)
        case .revoked(let entry): return .revoked(line: entry.line)
        case .otherKeys(let entries): return .otherKeys(lines: entries.map(\.line))
        case .certificateAuthority(let entry): return .certificateAuthority(line: entry.line)
        case .unknown: return .unknown
        }
    }

    @Test(arguments: [
        ("example.com", "example.com", 22, true),
        ("EXAMPLE.com", "example.COM", 22, true),
        ("other.org,example.com", "example.com", 22, true),
        ("example.com", "example.com", 2222, false),
        ("[example.com]:2222", "example.com", 2222, true),
        ("[example.com]:2222", "example.com", 22, false),
        ("[example.com]:22", "example.com", 22, false),
        ("*.example.com", "a.example.com", 22, true),
        ("*.example.com", "example.com", 22, false),
        ("*.example.com,!b.example.com", "a.example.com", 22, true),
        ("*.example.com,!b.example.com", "b.example.com", 22, false),
        ("!b.example.com", "a.example.com", 22, false),
        ("192.168.0.?", "192.168.0.7", 22, true),
        ("192.168.0.?", "192.168.0.17", 22, false),
        ("[127.0.0.*]:2222", "127.0.0.1", 2222, true),
        ("::1", "::1", 22, true),
        ("*a*b*c", "xaybzc", 22, true),
        ("*a*b*c", "xaybz", 22, false),
        ("exam*", "example.com", 2222, false),
        // A combining mark does not merge with the delimiter before it. Only ASCII letters match regardless of case.
        ("example.com,\u{301}x", "example.com", 22, true),
        ("!\u{301}x,*", "\u{301}x", 22, false),
        ("\u{212A}elvin", "kelvin", 22, false),
    ])
    func `patterns match the same names as in OpenSSH`(patterns: String, host: String, port: UInt16, matches: Bool) throws {
        let verdict = try Self.verdict("\(patterns) ssh-ed25519 \(Self.key) a comment\n", host: host, port: port)
        #expect(verdict == (matches ? .known(line: 1) : .unknown))
    }

    @Test func `hashed names match only the exact name and port`() throws {
        let text = "\(Self.hashed("[example.com]:2222")) ssh-ed25519 \(Self.key)"
        #expect(try Self.verdict(text, host: "Example.com", port: 2222) == .known(line: 1))
        #expect(try Self.verdict(text, host: "example.com", port: 22) == .unknown)
        #expect(try Self.verdict(text, host: "example.org", port: 2222) == .unknown)
    }

    @Test func `only invalid lines are ignored`() throws {
        let text = """
            # a comment
              # another
            example.com
            example.com ssh-ed25519
            example.com ssh-ed25519 not-base64!
            example.com ssh-rsa \(Self.key)
            |1|short ssh-ed25519 \(Self.key)
            |2|AAAA|AAAA ssh-ed25519 \(Self.key)
            @unheard-of example.com ssh-ed25519 \(Self.key)
            @revoked
            , ssh-ed25519 \(Self.key)
            example.com 1024 65537 12345678901234567890
            \u{0}\u{1}

            \texample.com \t ssh-ed25519   \(Self.key)\r
            """
        #expect(try Self.verdict(text, host: "example.com", port: 22) == .known(line: 15))
    }

    @Test func `a revoked key is rejected even if another line accepts it`() throws {
        let text = """
            example.com ssh-ed25519 \(Self.key)
            @revoked * ssh-ed25519 \(Self.key)
            """
        #expect(try Self.verdict(text, host: "example.com", port: 22) == .revoked(line: 2))
        // Other keys of the same host are not revoked.
        #expect(try Self.verdict(text, host: "example.com", port: 22, key: Self.otherKey) == .otherKeys(lines: [1]))
        #expect(try Self.verdict("@revoked * ssh-ed25519 \(Self.key)", host: "example.com", port: 22, key: Self.otherKey) == .unknown)
    }

    @Test func `a host that is known by other keys is reported`() throws {
        let text = "example.com ssh-ed25519 \(Self.key)\nexample.com ssh-ed25519 \(Self.otherKey)"
        #expect(try Self.verdict(text, host: "example.com", port: 22, key: Self.otherKey) == .known(line: 2))
        #expect(try Self.verdict(text, host: "example.com", port: 22, key: Self.ecdsaKey) == .otherKeys(lines: [1, 2]))
    }

    @Test func `the key of a certificate authority is not accepted as a host key`() throws {
        let text = "@cert-authority *.example.com ssh-ed25519 \(Self.key)"
        #expect(try Self.verdict(text, host: "a.example.com", port: 22) == .certificateAuthority(line: 1))
        #expect(try Self.verdict(text, host: "a.example.org", port: 22) == .unknown)
    }

    @Test func `the known key types are listed in file order`() throws {
        var known = KnownHosts()
        known.add(Array("example.com ecdsa-sha2-nistp256 \(Self.ecdsaKey)\n* ssh-ed25519 \(Self.key)\n".utf8), file: "a")
        known.add(Array("@cert-authority * ssh-ed25519 \(Self.otherKey)\n".utf8), file: "b")
        #expect(known.keyTypes(of: HostName("example.com", port: 22)) == ["ecdsa-sha2-nistp256", "ssh-ed25519"])
        #expect(known.keyTypes(of: HostName("example.org", port: 22)) == ["ssh-ed25519"])
    }

    @Test func `the fingerprint of a key equals the fingerprint that ssh-keygen prints`() throws {
        // echo "ssh-ed25519 <key>" | ssh-keygen -lf -
        #expect(try Self.hostKey(Self.key).fingerprint == "SHA256:5m1iv0ek90VcionDqYQsfbBaMM9zdlpsJagPFcJieAg")
    }

    @Test func `random bytes are tolerated`() {
        var generator = SystemRandomNumberGenerator()
        let line = Array("@revoked [a]:1,|1|AA==|AA== ssh-ed25519 \(Self.key)\n".utf8)
        for _ in 0..<2_000 {
            var bytes = line + line
            for _ in 0..<Int.random(in: 0..<8, using: &generator) {
                bytes[Int.random(in: bytes.indices, using: &generator)] = .random(in: .min ... .max, using: &generator)
            }
            var known = KnownHosts()
            known.add(bytes, file: "random")
            #expect(known.entries.count <= bytes.count)
            _ = HostKey(bytes)
        }
    }

    @Test func `invalid lines are reported`() {
        var known = KnownHosts()
        let lines = ["# a comment", "", " \t", "example.com ssh-ed25519 \(Self.key)", "example.com ssh-ed25519 AAAA", "@revoked oops", "x"]
        known.add(Array(lines.joined(separator: "\n").utf8), file: "known")
        #expect(known.entries.count == 1)
        #expect(known.faults.map(\.location) == ["known:5", "known:6", "known:7"])
        #expect(known.faults.map(\.hasMarker) == [false, true, false])
    }

    /// A line that was meant to revoke a key is reported, even after many other invalid lines.
    @Test func `invalid lines with a marker are always counted`() {
        var known = KnownHosts()
        let lines = Array(repeating: "x", count: 300) + Array(repeating: "@revoked oops", count: 300) + ["x", "@revoked oops"]
        known.add(Array(lines.joined(separator: "\n").utf8), file: "known")
        #expect(known.faults.count == 200 && known.faults.count(where: \.hasMarker) == 100)
        #expect(known.faults.first { $0.hasMarker }?.location == "known:301")
        #expect(known.markedFaultCount == 301)
    }

    @Test func `OpenSSH's files are used by default`() throws {
        let policy = HostKeyPolicy()
        let user = try #require(policy.userFile)
        #expect(user.lastComponent?.string == "known_hosts")
        #expect(
            policy.systemFiles == [
                user.removingLastComponent().appending("known_hosts2"), "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2",
            ])
    }
}
