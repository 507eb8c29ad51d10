import HTTPSupport
import TransferCore
import TransportSupport

extension HTTPOptions {
    /// A kind of transfer that a session's setting can affect.
    private enum Use {
        case put, post, form, download
    }

    /// A setting for the transfer of files. Sessions can have such a setting.
    private struct FileSetting {
        let setting: Setting<HTTPOptions>
        let uses: Set<Use>

        init(_ setting: Setting<HTTPOptions>, _ uses: Set<Use>, onlySessions: Bool = false) {
            self.setting = setting.forSessions(only: onlySessions)
            self.uses = uses
        }
    }

    static let table = SettingTable(
        of: .http, HTTPOptions(),
        fileSettings.map(\.setting)
            + [
                Setting(
                    "webDAV", \.webDAV, .flag, "`true` if the server supports WebDAV: creates missing folders of uploads, and lists folders"
                )
            ] + requestSettings.filter { request in !fileSettings.contains { $0.setting.name == request.name } })

    private static let fileSettings: [FileSetting] =
        [
            FileSetting(
                Setting(
                    "acceptedStatuses", \.acceptedStatuses, .statuses,
                    "statuses from 300 to 399, separated by commas, that mean that the file has arrived; for a `POST`, 303 always does"),
                [.put, .post, .form]),
            FileSetting(
                Setting(
                    "contentType", \.contentType, .text("a media type"), "the media type of all files",
                    nil: "by file name extension, otherwise `application/octet-stream`"), [.put, .post, .form]),
            FileSetting(
                Setting(
                    family: "field", \.fields, .anyText,
                    "the value of a text field of the form; `{name}`, `{path}` and `{transfer}` are replaced, other braces stay"), [.form]),
            FileSetting(
                Setting(
                    family: "file", \.files, .formFiles,
                    "the path of another file in the form, beginning with `/` or `{source}`; several separated by line breaks"), [.form]),
            FileSetting(
                Setting("fileField", \.fileField, .text("the name of a field"), "the name of the form's field for the file"), [.form]),
            FileSetting(
                Setting(
                    "metadataPrefix", \.metadataPrefix, .headerPrefix,
                    "a prefix that turns names of a session's metadata into names of headers, for `PUT` and `POST`",
                    nil: "metadata is rejected"), [.put, .post]),
            FileSetting(
                Setting(
                    "repeatsUnknownOutcomes", \.repeatsUnknownOutcomes, .flag,
                    "`true` to let a fleet send a `POST` again whose outcome is unknown, although the server may have received it"
                ), [.post, .form]),
            FileSetting(
                Setting(
                    "responseLimit", \.responseLimit, .number(0...ServerResponse.maximumLimit),
                    "the maximum number of bytes of the server's response to keep with a file, from 0 to 262144"), [.put, .post, .form]),
            FileSetting(
                Setting(
                    "transferTimeout", \.transferTimeout, .seconds, "the time limit of one attempt for a file, in seconds",
                    nil: "no limit"), [.put, .post, .form, .download]),
            FileSetting(
                Setting("upload", \.upload, .choice, "`put`, `post` or `form`, overriding the address", nil: "as the address"),
                [.put, .post, .form],
                onlySessions: true),
            FileSetting(
                Setting(
                    "uploadCheck", \.uploadCheck, .choice,
                    "`response`, or `head` to compare the size of an uploaded file with one more request; see below"), [.put]),
            FileSetting(
                Setting(family: "uploadURL", \.capabilities.values, .uploadURL, "the URL for the file with this remote name"),
                [.put, .post, .form], onlySessions: true),
        ]
        + requestSettings.compactMap { setting in
            switch setting.name {
            case "contentDisposition": FileSetting(setting, [.download])
            case "parallelThreshold": FileSetting(setting, [.put, .post, .form, .download])
            default: nil
            }
        }

    private static let requestSettings = RequestOptions.settings { (name, value) throws(TransferError) in
        guard name.lowercased() != "content-type" else {
            throw .invalidEndpoint("The setting header.\(name) does not set the type of files; write contentType.")
        }
        try ReservedHeaders.http.check(name, value)
    }.map { $0.within(\HTTPOptions.requests) }

    /// Rejects a session's settings that are for another kind of transfer.
    ///
    /// - Parameters:
    ///   - settings: The session's settings.
    ///   - upload: The upload method of the session; nil for a session of downloads.
    /// - Throws: A ``TransferError`` that names the setting. Another endpoint of the account may support it.
    static func checkEffect(of settings: [String: String], upload: EndpointAddress.Upload?) throws(TransferError) {
        let use: Use =
            switch upload {
            case nil: .download
            case .form: .form
            case .post: .post
            case .some: .put
            }
        for key in settings.keys.sorted() {
            guard let uses = fileSettings.first(where: { $0.setting.includes(key) })?.uses, !uses.contains(use) else { continue }
            let explanation =
                switch use {
                case .download: "is for uploads, but this session downloads; remove it."
                case _ where uses == [.download]: "is for downloads, but this session uploads; remove it."
                case .put: "is for forms, but the files of this session are sent by PUT; remove it, or add the setting upload=form."
                case .post: "has no effect on a POST without a form; remove it."
                case .form: "is for PUT, but the files of this session are sent in forms; remove it, or add the setting upload=put."
                }
            throw TransferError(.unsupported, .unsupported, "The setting \(key) \(explanation)")
        }
    }
}

extension SettingFormat<Set<Int>> {
    fileprivate static var statuses: Self {
        Self("statuses from 300 to 399, separated by commas") { text in
            let statuses = text.words.map { Int($0) }
            return statuses.allSatisfy { $0.map { (300...399).contains($0) } ?? false } ? Set(statuses.compactMap(\.self)) : nil
        } text: { statuses in
            statuses.sorted().map { "\($0)" }.joined(separator: ",")
        }
    }
}

extension SettingFormat<[String]> {
    fileprivate static var formFiles: Self {
        .lines("the path of a file that begins with / or \(FormFiles.sourcePlaceholder), or several separated by line breaks") {
            $0.hasPrefix("/") || $0.hasPrefix(FormFiles.sourcePlaceholder)
        }
    }
}

extension SettingFormat<String> {
    fileprivate static var headerPrefix: Self {
        Self(
            "the beginning of a header name", parse: { $0.isEmpty || !$0.utf8.allSatisfy(ReservedHeaders.isHeaderNameByte) ? nil : $0 },
            text: { $0 })
    }

    /// The format of an upload URL, which may be secret.
    fileprivate static var uploadURL: Self {
        Self(
            "an https or http URL without a user and a fragment, as https://host/path?query", isSecret: true,
            parse: { (try? UploadURLCheck.check($0)) == nil ? nil : $0 }, text: { $0 })
    }
}

extension ReservedHeaders {
    static let http = ReservedHeaders(of: .http, names: ["content-range"])
}
