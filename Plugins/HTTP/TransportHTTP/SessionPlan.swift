import CurlEngine
import HTTPSupport
import TransferCore

/// What an endpoint and the options of a session come to together, checked as far as that goes without asking anybody.
struct SessionPlan {
    let address: EndpointAddress
    let settings: HTTPSettings
    /// The session's, but for the media type of its files.
    let headers: HTTPHeaders
    /// The media type that the session gives to its files.
    let contentType: String?

    /// How files are uploaded.
    var upload: EndpointAddress.Upload { settings.upload ?? address.upload }

    /// - Parameter direction: Nil for what belongs to no session.
    /// - Throws: A ``TransferError`` that names the option or the setting that makes no sense, or can't be had there.
    init(_ endpoint: Endpoint, _ options: AttemptOptions = AttemptOptions(), for direction: TransferDirection?) throws(TransferError) {
        address = try EndpointAddress(endpoint)
        settings = try HTTPSettings(endpoint.settings, session: options.settings)
        var headers = try ReservedHeaders.http.sessionHeaders(options.headers)
        contentType = headers["Content-Type"]
        headers["Content-Type"] = nil
        self.headers = headers
        switch direction {
        case .upload: try checkUpload(options)
        case .download:
            try HTTPSettings.checkEffect(of: options.settings, upload: nil)
            _ = try DigestCheck(options)
        case nil: break
        }
    }

    /// What happens to two files that have one remote name.
    ///
    /// A form's handler can tell them apart only by a field that differs.
    var nameClash: NameClash {
        let tellsApart =
            switch upload {
            case .form: settings.fields.values.contains { $0.contains(TransferNames.transfer) } || namesTransfers
            case .put, .none: namesTransfers
            }
        return tellsApart ? .keptApart : .replaced
    }

    /// A URL that the session has for a name goes before the address.
    private var namesTransfers: Bool { settings.uploadURLs.isEmpty && address.namesTransfers }

    private func checkUpload(_ options: AttemptOptions) throws(TransferError) {
        if let url = options.uploadURL { try UploadPlace.check(url) }
        guard upload != .none else {
            throw Self.unsupported(
                "The endpoint \(address.origin) is one to download from; write its address with https+put:// or https+form://.")
        }
        try HTTPSettings.checkEffect(of: options.settings, upload: upload)
        guard options.verification != .checksum, options.expectedChecksum == nil else {
            throw Self.unsupported("Plain HTTP has no means to compare checksums of what was uploaded; ask for another verification.")
        }
        guard upload == .form || options.metadata.isEmpty || settings.metadataPrefix != nil else {
            throw Self.unsupported("A PUT has no place for metadata, unless the setting metadataPrefix makes headers of them.")
        }
        guard upload == .form || settings.files.isEmpty else {
            throw Self.unsupported("A PUT brings one file; the settings file.NAME are for forms.")
        }
        if upload == .put, let prefix = settings.metadataPrefix {
            // The media type has an option and a setting of its own.
            let reserved = ReservedHeaders.http.adding(["content-type"])
            for (name, value) in options.metadata { try reserved.check(prefix + name, value) }
        }
        // In a form it is written among the body's own lines.
        guard (contentType ?? settings.contentType)?.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) != true else {
            throw TransferError(.permanent, .rejected, "The media type for files has a line break or a control character; remove it.")
        }
    }

    private static func unsupported(_ message: String) -> TransferError { TransferError(.unsupported, .unsupported, message) }
}

extension FileAttempt {
    /// Which way the file goes.
    var direction: TransferDirection {
        switch payload {
        case .upload: .upload
        case .download: .download
        }
    }
}
