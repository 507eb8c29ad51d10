import Testing
import TransferCore
import TransportSupport

@Suite struct SettingTableTests {
    private enum Color: String, CaseIterable, Sendable {
        case red, green
    }

    private struct Options: Hashable, Sendable {
        struct Inner: Hashable, Sendable {
            var isOn = false
            var keys: [String: String] = [:]
        }

        var inner = Inner()
        var size: Int64 = 64 << 20
        var color = Color.red
        var name: String?
        var words: [String] = []
        var time: Duration?
    }

    private static let table = SettingTable(
        of: "test", Options(),
        [
            Setting("size", \.size, .bytes(from: 1), "a size").forSessions(),
            Setting("color", \.color, .choice, "`red` or `green`"),
            Setting("name", \.name, .text("a name"), "a name", nil: "the name of the file"),
            Setting("words", \.words, .list, "words"),
            Setting("time", \.time, .seconds, "seconds").forSessions(only: true),
        ]
            + [
                Setting("isOn", \.isOn, .flag, "`true`"),
                Setting(
                    family: "key", \.keys,
                    SettingFormat("text without x", isSecret: true, parse: { $0.contains("x") ? nil : $0 }, text: { $0 }), "a key"),
            ].map { $0.within(\Options.inner) })

    private func error(_ endpoint: [String: String], session: [String: String] = [:]) -> String {
        let error = #expect(throws: TransferError.self) { try Self.table.read(endpoint, session: session) }
        #expect(error?.code == .invalidEndpoint && error?.failureClass == .permanent)
        return error?.message ?? ""
    }

    @Test func preservesSettings() throws {
        let endpoint = ["size": "7", "color": "green", "name": "a", "words": "a,b", "isOn": "true", "key.a.b": "1", "key.c": ""]
        let options = try Self.table.read(endpoint)
        #expect(
            options
                == Options(
                    inner: Options.Inner(isOn: true, keys: ["a.b": "1", "c": ""]), size: 7, color: .green, name: "a", words: ["a", "b"]))
        #expect(Self.table.write(options) == endpoint)
        let both = try Self.table.read(endpoint, session: ["size": "8", "time": "1.5"])
        #expect(both.size == 8 && both.time == .seconds(1.5) && both.color == .green)
        #expect(Self.table.write(both) == endpoint.merging(["size": "8", "time": "1.5"]) { $1 })
    }

    @Test func omitsDefaultValues() throws {
        #expect(Self.table.write(Options()) == [:])
        #expect(Self.table.write(try Self.table.read(["size": "67108864", "color": "red", "isOn": "false", "words": ""])) == [:])
    }

    @Test(arguments: [
        ("sizes", "size"), ("COLOR", "color"), ("nmae", "name"), ("keys.a", "key.NAME"), ("key", "key.NAME"), ("key.", "key.NAME"),
    ])
    func suggestsNearestSetting(name: String, nearest: String) {
        #expect(error([name: "1"]) == "The setting \"\(name)\" is unknown to the test transport. Did you mean \(nearest)?")
    }

    @Test(arguments: ["?", "", "proxyCommand"]) func listsAllSettingsIfNoneIsSimilar(name: String) {
        let message = error([name: "1"])
        #expect(message.contains(name.debugDescription))
        #expect(message.hasSuffix("; valid settings are color, isOn, key.NAME, name, size, words."))
    }

    @Test func distinguishesSessionSettings() {
        #expect(error(["time": "1"]).contains("time is only for sessions"))
        #expect(error([:], session: ["color": "red"]).hasSuffix("settings for sessions are size, time."))
        #expect(error([:], session: ["?": "1"]).hasSuffix("settings for sessions are size, time."))
        #expect(error([:], session: ["siez": "1"]).hasSuffix("Did you mean size?"))
    }

    /// If several settings are invalid, every call must report the same setting.
    @Test func validatesInAlphabeticalOrder() {
        let settings = Dictionary(uniqueKeysWithValues: (0..<50).map { ("key.\($0)", "x") }).merging(["size": "0", "color": "x"]) { $1 }
        #expect(error(settings).hasPrefix("The setting color is \"x\"; write one of green, red"))
    }

    @Test(arguments: ["size": "0", "name": "", "time": "0", "isOn": "1", "color": ""]) func errorsContainInvalidValues(
        name: String, value: String
    ) {
        let message = name == "time" ? error([:], session: [name: value]) : error([name: value])
        #expect(message.hasPrefix("The setting \(name) is \(value.debugDescription); write "))
    }

    @Test(arguments: ["72057594037927937", "9223372036854775807", "9223372036854775808"]) func limitsSizes(size: String) {
        #expect(error(["size": size]).contains("write a number of bytes from 1 to 72057594037927936"))
    }

    @Test func errorsOmitSecretValues() {
        #expect(error(["key.a": "x-secret"]) == "The setting key.a is invalid; write text without x.")
    }

    @Test func describesAllSettings() {
        let descriptions = Self.table.descriptions
        #expect(descriptions.map(\.name) == ["color", "isOn", "key.NAME", "name", "size", "time", "words"])
        #expect(
            descriptions.map(\.standard) == ["`red`", "`false`", "none", "the name of the file", "`67108864` (64 MiB)", "none", "none"])
        #expect(descriptions.filter(\.isForSessions).map(\.name) == ["size", "time"])
        #expect(descriptions.filter { !$0.isForEndpoints }.map(\.name) == ["time"])
    }
}
