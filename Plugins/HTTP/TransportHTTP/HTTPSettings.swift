import CurlEngine
import Foundation
import HTTPSupport
import TransferCore

/// The settings of an endpoint and a session, checked. A session's take precedence.
struct HTTPSettings {
    /// How files are uploaded; nil for the method of the address.
    var upload: EndpointAddress.Upload?

    /// The settings for requests that all HTTP transports have.
    var requests = RequestSettings()

    /// The form's text fields and their values, with placeholders.
    var fields: [String: String] = [:]

    /// The paths of additional files in the form, by their fields, with placeholders.
    var files: [String: [String]] = [:]

    /// The name of the form's field for the file.
    var fileField = "file"

    /// The media type of all files; nil to derive it from their names.
    var contentType: String?

    /// The prefix that makes headers of a session's metadata; nil if they can't be sent with a `PUT`.
    var metadataPrefix: String?

    /// Further statuses that mean success.
    var acceptedStatuses: Set<Int> = []

    /// The time limit of an attempt.
    var transferTimeout: Duration?

    /// The session's URLs for its files, by their remote names: capabilities.
    private(set) var uploadURLs: [String: String] = [:]

    private static let fieldKey = "field."
    private static let fileKey = "file."
    private static let uploadURLKey = "uploadURL."

    /// - Parameters:
    ///   - settings: The endpoint's settings.
    ///   - others: The session's settings.
    /// - Throws: A ``TransferError`` that names the invalid setting.
    init(_ settings: [String: String], session others: [String: String] = [:]) throws(TransferError) {
        for key in others.keys.sorted() where !Self.isForSessions(key) {
            throw SettingsValue.invalid(
                "The setting \(key.debugDescription) can't be set for a session; the http transport's settings for sessions are "
                    + "\(Self.ofSessions.joined(separator: ", ")).")
        }
        guard settings["upload"] == nil else {
            throw SettingsValue.invalid("The setting upload is only for sessions; an endpoint's address contains the upload method.")
        }
        if let key = settings.keys.first(where: { $0.hasPrefix(Self.uploadURLKey) }) {
            throw SettingsValue.invalid("The setting \(key) is only for sessions; an endpoint's address contains the place for files.")
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

    /// The settings for a session's files, in contrast to those for reaching and trusting the server.
    private static let forSessions: Set<String> = [
        "acceptedStatuses", "contentDisposition", "contentType", "fileField", "metadataPrefix", "parallelThreshold", "transferTimeout",
        "upload",
    ]

    private static let prefixesForSessions = [fieldKey, fileKey, uploadURLKey]

    private static func isForSessions(_ key: String) -> Bool {
        forSessions.contains(key) || prefixesForSessions.contains { key.hasPrefix($0) }
    }

    /// The settings for sessions, for messages.
    static let ofSessions = (Array(forSessions) + prefixesForSessions.map { "\($0)NAME" }).sorted()

    private mutating func set(_ key: String, _ value: String) throws(TransferError) {
        switch key {
        case "upload": upload = try SettingsValue.choice(key, value, ["put": .put, "form": .form])
        case "fileField": fileField = try Self.notEmpty(key, value)
        case "contentType": contentType = try Self.notEmpty(key, value)
        case "metadataPrefix":
            guard value.utf8.allSatisfy({ ReservedHeaders.isOfNames($0) }) else {
                throw SettingsValue.invalid("The setting \(key) is \(value.debugDescription); write the beginning of a header name.")
            }
            metadataPrefix = try Self.notEmpty(key, value)
        case "acceptedStatuses": acceptedStatuses = try Self.statuses(key, value)
        case "transferTimeout":
            guard let seconds = Double(value), seconds > 0, seconds <= 1e9 else {
                throw SettingsValue.invalid("The setting \(key) is \(value.debugDescription); write a number of seconds above 0.")
            }
            transferTimeout = .seconds(seconds)
        default:
            throw SettingsValue.invalid(
                "The setting \(key.debugDescription) is unknown to the http transport; valid settings are \(Self.known.joined(separator: ", "))."
            )
        }
    }

    /// The settings for endpoints, for messages.
    static let known =
        (RequestSettings.names + [
            "acceptedStatuses", "contentType", "field.NAME", "file.NAME", "fileField", "metadataPrefix", "transferTimeout",
        ]).sorted()

    private static func paths(_ key: String, _ list: String) throws(TransferError) -> [String] {
        let paths = list.split(separator: "\n").map(String.init)
        guard !paths.isEmpty, paths.allSatisfy({ $0.hasPrefix("/") || $0.hasPrefix(FormFiles.sourcePlace) }) else {
            throw SettingsValue.invalid(
                "The setting \(key) is \(list.debugDescription); write the path of a file that begins with / or \(FormFiles.sourcePlace), or several "
                    + "separated by line breaks.")
        }
        return paths
    }

    /// - Throws: An error without the URL, which is a capability.
    private static func url(_ key: String, _ text: String) throws(TransferError) -> String {
        guard (try? UploadPlace.check(text)) != nil else {
            throw SettingsValue.invalid(
                "The setting \(key) is not an https or http URL, or has a user or a fragment; write it as https://host/path?query.")
        }
        return text
    }

    private static func notEmpty(_ key: String, _ value: String) throws(TransferError) -> String {
        guard !value.isEmpty else { throw SettingsValue.invalid("The setting \(key) is empty; remove it, or set a value.") }
        return value
    }

    private static func statuses(_ key: String, _ list: String) throws(TransferError) -> Set<Int> {
        var statuses: Set<Int> = []
        for text in list.split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
            guard let status = Int(text), (300...399).contains(status) else {
                throw SettingsValue.invalid(
                    "The setting \(key) has \(String(text).debugDescription); write statuses from 300 to 399, separated by commas.")
            }
            statuses.insert(status)
        }
        return statuses
    }
}

extension ReservedHeaders {
    /// The reserved headers of the http transport.
    static let http = ReservedHeaders(of: .http, names: ["content-range"])
}
