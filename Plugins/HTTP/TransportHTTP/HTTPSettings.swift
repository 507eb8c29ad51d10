import CurlEngine
import Foundation
import HTTPSupport
import TransferCore

/// An endpoint's settings, with those that a session has instead, checked.
struct HTTPSettings {
    /// How files are uploaded; nil for the way that the address names.
    var upload: EndpointAddress.Upload?

    /// The settings for requests that all HTTP transports have.
    var requests = RequestSettings()

    /// The form's text fields and their values, before names are put in their places.
    var fields: [String: String] = [:]

    /// The paths of the files that go along in the form, by the names of their fields, before names are put in their places.
    var files: [String: [String]] = [:]

    /// The name of the form's field for the file.
    var fileField = "file"

    /// The media type of all files; nil to go by their names.
    var contentType: String?

    /// What makes headers of the names in a session's metadata; nil where they can't be sent with a `PUT`.
    var metadataPrefix: String?

    /// Further statuses that mean success.
    var acceptedStatuses: Set<Int> = []

    /// Files from this many bytes on are received in several parts at once, where a session asks for that.
    var parallelThreshold: Int64 = 64 << 20

    /// Whether a download is called what the server says, unless the app named it.
    var namesDownloads = false

    /// How long an attempt may take.
    var transferTimeout: Duration?

    /// The URLs that a session has for its files, by their remote names: capabilities.
    private(set) var uploadURLs: [String: String] = [:]

    private static let fieldKey = "field."
    private static let fileKey = "file."
    private static let uploadURLKey = "uploadURL."

    /// - Parameters:
    ///   - settings: The endpoint's.
    ///   - others: Those that a session has in their place.
    /// - Throws: A ``TransferError`` that names the setting that makes no sense.
    init(_ settings: [String: String], session others: [String: String] = [:]) throws(TransferError) {
        for key in others.keys.sorted() where !Self.isForSessions(key) {
            throw SettingsValue.invalid(
                "The setting \(key.debugDescription) can't be a session's own; those of the http transport are "
                    + "\(Self.ofSessions.joined(separator: ", ")).")
        }
        guard settings["upload"] == nil else {
            throw SettingsValue.invalid("The setting upload is one of sessions; an endpoint's address says how files are uploaded.")
        }
        if let key = settings.keys.first(where: { $0.hasPrefix(Self.uploadURLKey) }) {
            throw SettingsValue.invalid("The setting \(key) is one of sessions; an endpoint's address says where files go.")
        }
        for (key, value) in settings.merging(others, uniquingKeysWith: { $1 }).sorted(by: { $0.key < $1.key }) {
            guard key.lowercased() != "header.content-type" else {
                throw SettingsValue.invalid("The setting \(key) does not set the type of files; write contentType.")
            }
            if try requests.take(key, value, reserved: .http) {
                continue
            } else if key.hasPrefix(Self.fieldKey), key != Self.fieldKey {
                fields[String(key.dropFirst(Self.fieldKey.count))] = value
            } else if key.hasPrefix(Self.fileKey), key != Self.fileKey {
                files[String(key.dropFirst(Self.fileKey.count))] = try Self.paths(key, value)
            } else if key.hasPrefix(Self.uploadURLKey), key != Self.uploadURLKey {
                uploadURLs[String(key.dropFirst(Self.uploadURLKey.count))] = try Self.url(key, value)
            } else {
                try set(key, value)
            }
        }
        try requests.complete()
    }

    /// What says what is done with a session's files, and not how the server is reached and trusted.
    private static let forSessions: Set<String> = [
        "acceptedStatuses", "contentDisposition", "contentType", "fileField", "metadataPrefix", "parallelThreshold", "transferTimeout",
        "upload",
    ]

    private static let prefixesForSessions = [fieldKey, fileKey, uploadURLKey]

    private static func isForSessions(_ key: String) -> Bool {
        forSessions.contains(key) || prefixesForSessions.contains { key.hasPrefix($0) }
    }

    /// The settings that a session may have, as people read them.
    static let ofSessions = (Array(forSessions) + prefixesForSessions.map { "\($0)NAME" }).sorted()

    private mutating func set(_ key: String, _ value: String) throws(TransferError) {
        switch key {
        case "upload": upload = try SettingsValue.choice(key, value, ["put": .put, "form": .form])
        case "fileField": fileField = try Self.notEmpty(key, value)
        case "contentDisposition": namesDownloads = try SettingsValue.choice(key, value, ["true": true, "false": false])
        case "contentType": contentType = try Self.notEmpty(key, value)
        case "metadataPrefix":
            guard value.utf8.allSatisfy({ ReservedHeaders.isOfNames($0) }) else {
                throw SettingsValue.invalid("The setting \(key) is \(value.debugDescription); write the beginning of a header's name.")
            }
            metadataPrefix = try Self.notEmpty(key, value)
        case "acceptedStatuses": acceptedStatuses = try Self.statuses(key, value)
        case "parallelThreshold": parallelThreshold = try SettingsValue.bytes(key, value, from: 1)
        case "transferTimeout":
            guard let seconds = Double(value), seconds > 0, seconds <= 1e9 else {
                throw SettingsValue.invalid("The setting \(key) is \(value.debugDescription); write a number of seconds above 0.")
            }
            transferTimeout = .seconds(seconds)
        default:
            throw SettingsValue.invalid(
                "The setting \(key.debugDescription) is not known to the http transport; it knows \(Self.known.joined(separator: ", ")).")
        }
    }

    /// The settings that an endpoint may have, as people read them.
    static let known =
        (RequestSettings.names + [
            "acceptedStatuses", "contentDisposition", "contentType", "field.NAME", "file.NAME", "fileField", "metadataPrefix",
            "parallelThreshold", "transferTimeout",
        ]).sorted()

    private static func paths(_ key: String, _ list: String) throws(TransferError) -> [String] {
        let paths = list.split(separator: "\n").map(String.init)
        guard !paths.isEmpty, paths.allSatisfy({ $0.hasPrefix("/") || $0.hasPrefix(FormFiles.sourcePlace) }) else {
            throw SettingsValue.invalid(
                "The setting \(key) is \(list.debugDescription); write the path of a file, from / or \(FormFiles.sourcePlace) on, or several "
                    + "with line breaks between them.")
        }
        return paths
    }

    /// - Throws: An error without the URL, which lets whoever has it write there.
    private static func url(_ key: String, _ text: String) throws(TransferError) -> String {
        guard (try? UploadPlace.check(text)) != nil else {
            throw SettingsValue.invalid(
                "The setting \(key) is no URL of https or http, or has a user or a fragment; write it as https://host/path?query.")
        }
        return text
    }

    private static func notEmpty(_ key: String, _ value: String) throws(TransferError) -> String {
        guard !value.isEmpty else { throw SettingsValue.invalid("The setting \(key) is empty; remove it, or give it a value.") }
        return value
    }

    private static func statuses(_ key: String, _ list: String) throws(TransferError) -> Set<Int> {
        var statuses: Set<Int> = []
        for text in list.split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
            guard let status = Int(text), (300...399).contains(status) else {
                throw SettingsValue.invalid(
                    "The setting \(key) has \(String(text).debugDescription); write statuses from 300 to 399 with commas between them.")
            }
            statuses.insert(status)
        }
        return statuses
    }
}

extension ReservedHeaders {
    /// Those of the http transport.
    static let http = ReservedHeaders(of: .http, names: ["content-range"])
}
