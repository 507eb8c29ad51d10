import Foundation
import TransferCore

@testable import HTTPSupport
@testable import TransferCommands
@testable import TransferOutput
@testable import TransportHTTP
@testable import TransportSFTP
@testable import TransportTUS

/// Targets for the input of users: addresses, settings and options.
enum SettingsTargets {
    /// The input is an address, followed by settings of the form `NAME=VALUE`, one per line. The target parses both together as an endpoint of each
    /// transport, and the settings alone as the settings of a session.
    static func settings(_ input: [UInt8]) {
        var reader = InputReader(input)
        let address = reader.text()
        var settings: [String: String] = [:]
        while !reader.isAtEnd {
            let fields = reader.text().split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            settings[String(fields[0])] = fields.count > 1 ? String(fields[1]) : ""
        }
        let endpoint = Endpoint(transport: .http, address: address, settings: settings)
        _ = try? endpoint.validate()
        _ = try? TUSTransport.validate(endpoint)
        _ = try? SFTPTransport.validate(endpoint)
        _ = try? HTTPTransport.validate(endpoint)
        if let options = try? TUSOptions(settings: settings) {
            require((try? TUSOptions(settings: options.settings)) == options, "Written options can be read.")
        }
        if let options = try? SFTPOptions(settings: settings) {
            require((try? SFTPOptions(settings: options.settings)) == options, "Written options can be read.")
        }
        if let options = try? HTTPOptions(settings: settings) {
            require((try? HTTPOptions(settings: options.settings)) == options, "Written options can be read.")
        }
        if let options = try? HTTPOptions(settings: [:], session: settings) {
            require((try? HTTPOptions(settings: [:], session: options.settings)) == options, "Written options can be read.")
        }
        if let address = try? EndpointAddress(endpoint) {
            require(!address.origin.host.isEmpty && !address.folder.isEmpty, "An address has a host.")
        }
        if let address = try? SFTPAddress(endpoint) {
            let components = address.folder.split(separator: UInt8(ascii: "/"))
            require(!address.folder.contains(0) && !components.contains { $0.elementsEqual("..".utf8) }, "A path stays in its folder.")
        }
        _ = try? UploadURLCheck.check(address)
        _ = try? TransferCommands.EndpointURL.endpoint(address, among: .builtIn)
    }

    /// The input is one argument of a command line.
    static func words(_ input: [UInt8]) {
        let text = ProcessArguments.string(of: input)
        require(ProcessArguments.bytes(of: text) == input, "The text of an argument has the same bytes as the argument.")
        if let count = ByteCount(text) { require(count.bytes >= 0, "A size is not negative.") }
        _ = StartTime(argument: text)
        if let field = try? HeaderField(text, option: "--header") {
            require(!field.name.isEmpty && !field.value.utf8.contains { $0 == 0x0A || $0 == 0x0D }, "A header is one line.")
        }
        _ = try? NamedSetting(text, of: .builtIn)
        _ = PathArgument(argument: text)
        _ = try? DigestCheck(AttemptOptions(expectedChecksum: text))
        _ = try? RemotePath(bytes: input)
    }
}
