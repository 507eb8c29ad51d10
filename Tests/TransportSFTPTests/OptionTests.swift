import Testing
import TransferCore
import TransportSFTP
import TransportSupport

@Suite struct OptionTests {
    private static let nonDefaults = SFTPOptions(
        identities: ["/home/me/.ssh/a", "/home/me/.ssh/b"], agent: .none, hostKey: .pinned("SHA256:abc"), knownHosts: "/etc/known",
        allowSHA1: true, maxConnections: 16, parallelThreshold: 1,
        network: NetworkOptions(
            proxy: .environment, proxyUser: "me", proxyExceptions: ["localhost"], interface: "127.0.0.1", addressFamily: .ipv4),
        keepTimes: true, keepModes: true, partFiles: false, sync: false)

    @Test func writesAndReadsAllSettings() throws {
        let command = SFTPOptions(agent: .socket("/run/agent"), hostKey: .acceptNew, proxyCommand: "ssh -W %h:%p jump")
        for options in [Self.nonDefaults, command, SFTPOptions()] {
            #expect(try SFTPOptions(settings: options.settings) == options)
            try SFTPTransport.validate(.sftp("sftp://me@host/", options: options))
        }
        let names = Set(Self.nonDefaults.settings.keys).union(command.settings.keys)
        #expect(names.sorted() == SFTPTransport.settings.map(\.name))
        #expect(SFTPOptions().settings == [:])
    }

    @Test(arguments: [("keepTime", "keepTimes"), ("identities", "identity"), ("ParallelThreshold", "parallelThreshold")])
    func suggestsNearestSetting(name: String, nearest: String) {
        let error = #expect(throws: TransferError.self) { try SFTPOptions(settings: [name: "1"]) }
        #expect(error?.message.contains("Did you mean \(nearest)?") == true, "\(error?.message ?? "")")
    }

    @Test(arguments: [
        ["knownHosts": ""], ["identity": ""], ["identity": "\n"], ["agent": ""], ["proxyCommand": ""],
        ["parallelThreshold": "9223372036854775807"], ["proxy": "socks5://a:1", "proxyCommand": "nc %h %p"], ["caFile": "/etc/ca.pem"],
    ])
    func rejectsInvalidSettings(settings: [String: String]) {
        let error = #expect(throws: TransferError.self) { try SFTPOptions(settings: settings) }
        #expect(error?.code == .invalidEndpoint)
        #expect(settings.keys.allSatisfy { error?.message.contains($0) == true })
    }

    @Test func validatesSettingsInAlphabeticalOrder() {
        let settings = ["sync": "1", "partFiles": "1", "keepTimes": "1", "keepModes": "1", "allowSHA1": "1", "maxConnections": "0"]
        for _ in 0..<20 {
            let copy = Dictionary(uniqueKeysWithValues: settings.shuffled())
            let error = #expect(throws: TransferError.self) { try SFTPOptions(settings: copy) }
            #expect(error?.message.contains("allowSHA1") == true)
        }
    }
}
