import CurlEngine
import HTTPSupport
import TransferCore

/// The combined options of an endpoint and a session, checked without contacting the server.
struct SessionPlan {
    let address: EndpointAddress
    let options: HTTPOptions
    /// The session's headers, without the media type of its files.
    let headers: HTTPHeaders
    let contentType: String?

    var upload: EndpointAddress.Upload {
        switch options.upload {
        case .put: .put
        case .post: .post
        case .form: .form
        case nil: address.upload
        }
    }

    /// - Parameter direction: The direction of the session; nil if there is no session.
    /// - Throws: A ``TransferError`` that names an invalid or unsupported option or setting.
    init(_ endpoint: Endpoint, _ options: AttemptOptions = AttemptOptions(), for direction: TransferDirection?) throws(TransferError) {
        address = try EndpointAddress(endpoint)
        self.options = try HTTPOptions(settings: endpoint.settings, session: options.settings)
        var headers = try ReservedHeaders.http.sessionHeaders(options.headers)
        contentType = headers["Content-Type"]
        headers["Content-Type"] = nil
        self.headers = headers
        switch direction {
        case .upload: try checkUpload(options)
        case .download:
            guard options.creationURL == nil else { throw Self.unsupported("A creation URL is only for uploads; remove it.") }
            try HTTPOptions.checkEffect(of: options.settings, upload: nil)
            _ = try DigestCheck(options)
        case nil: break
        }
    }

    /// Checks that the endpoint is a WebDAV folder, so that its folders can be listed.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/unsupported`` that names the remedy.
    func checkListing() throws(TransferError) {
        guard options.webDAV else {
            throw Self.unsupported(
                "\(address.origin) is not known to list folders. If it is a WebDAV server, set the account's setting webDAV to true; otherwise "
                    + "name the files.")
        }
        guard address.isFolder else {
            throw Self.unsupported(
                "The address at \(address.origin) has placeholders, so folders can't be listed there; write the address of a folder, or name the "
                    + "files.")
        }
    }

    /// What happens to two files with the same remote name.
    ///
    /// A form handler can distinguish the files only by a field or an address that contains the transfer's ID.
    var nameClash: NameClash {
        let distinguishesFiles =
            switch upload {
            case .form: options.fields.values.contains { $0.contains(TransferNames.transfer) } || hasTransferPlaceholder
            case .put, .post, .none: hasTransferPlaceholder
            }
        return distinguishesFiles ? .bothKept : .replaced
    }

    /// Whether each transfer has its own URL. A session's URL for a name takes precedence over the address.
    private var hasTransferPlaceholder: Bool { options.uploadURLs.isEmpty && address.hasTransferPlaceholder }

    private func checkUpload(_ options: AttemptOptions) throws(TransferError) {
        if let url = options.uploadURL { try UploadURLCheck.check(url) }
        guard options.creationURL == nil else {
            throw Self.unsupported("Plain HTTP does not create uploads, so it can't use a creation URL; use an upload URL.")
        }
        guard upload != .none else {
            throw Self.unsupported(
                "The endpoint \(address.origin) is for downloads; write its address with https+put://, https+post:// or https+form://.")
        }
        try HTTPOptions.checkEffect(of: options.settings, upload: upload)
        guard options.expectedChecksum == nil else {
            throw Self.unsupported("An expected checksum is only for downloads; for uploads, verify checksums (--verify checksum).")
        }
        guard upload == .put || options.verification != .checksum else {
            throw Self.unsupported("The content of files that are sent by POST can't be verified; choose another verification.")
        }
        guard upload == .form || options.metadata.isEmpty || self.options.metadataPrefix != nil else {
            throw Self.unsupported("Without the setting metadataPrefix, only forms can contain metadata.")
        }
        guard upload == .form || self.options.files.isEmpty else {
            throw Self.unsupported("A request without a form has one file; the settings file.NAME are for forms.")
        }
        if upload != .form, let prefix = self.options.metadataPrefix {
            // Metadata must not set the media type, which has its own option and setting.
            let reserved = ReservedHeaders.http.adding(["content-type"])
            for (name, value) in options.metadata { try reserved.check(prefix + name, value) }
        }
        // In a form, the media type is a header line within the body, where a line break would begin another line.
        guard (contentType ?? self.options.contentType)?.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) != true else {
            throw TransferError(.permanent, .rejected, "The media type for files contains a line break or a control character; remove it.")
        }
    }

    /// Checks that an item that is a form can be sent.
    ///
    /// - Throws: A ``TransferError`` if the upload method is not a form, or if the settings contain additional files.
    func checkForms() throws(TransferError) {
        guard upload == .form else {
            throw Self.unsupported(
                "The endpoint \(address.origin) does not send files in forms; write its address with https+form://, or add the setting "
                    + "upload=form.")
        }
        guard options.files.isEmpty else {
            throw Self.unsupported(
                "The settings file.NAME add files to a form for a single file. The forms of this session list their files, so remove these settings."
            )
        }
    }

    private static func unsupported(_ message: String) -> TransferError { TransferError(.unsupported, .unsupported, message) }
}

extension FileAttempt {
    var direction: TransferDirection {
        switch payload {
        case .upload, .form: .upload
        case .download: .download
        }
    }
}
