import HTTPSupport
import TransferCore

extension HTTPSettings {
    private static let forForms = ["fileField"]
    private static let prefixesForForms = ["field.", "file."]
    private static let forDownloads = "contentDisposition"
    private static let forAll = ["parallelThreshold", "transferTimeout"]

    /// Rejects settings of a session that have no effect on its files.
    ///
    /// - Parameters:
    ///   - settings: The session's settings.
    ///   - upload: How its files are uploaded; nil for a session of downloads.
    /// - Throws: A ``TransferError`` that names the setting.
    static func checkEffect(of settings: [String: String], upload: EndpointAddress.Upload?) throws(TransferError) {
        for key in settings.keys.sorted() {
            let isForForms = forForms.contains(key) || prefixesForForms.contains { key.hasPrefix($0) }
            switch upload {
            case nil where !forAll.contains(key) && key != forDownloads:
                throw without("The setting \(key) is for uploads, but this session downloads; remove it.")
            case .put where isForForms:
                throw without(
                    "The setting \(key) is for forms, but the files of this session are sent by PUT; remove it, or add the setting upload=form."
                )
            case .some where key == forDownloads:
                throw without("The setting \(key) is for downloads, but this session uploads; remove it.")
            case .form where key == "metadataPrefix":
                throw without(
                    "The setting \(key) is for PUT, but the files of this session are sent in forms; remove it, or add the setting upload=put."
                )
            default: continue
            }
        }
    }

    /// Another endpoint of the account may support the setting.
    private static func without(_ message: String) -> TransferError { TransferError(.unsupported, .unsupported, message) }

    /// The session's URL for a file. The names must be equal byte for byte: equivalent Unicode texts are different files.
    ///
    /// - Returns: Nil if the session has no such URLs.
    /// - Throws: A ``TransferError`` if the session has URLs, but none for this file, which would otherwise go to an unintended place.
    func uploadURL(for path: RemotePath) throws(TransferError) -> String? {
        guard !uploadURLs.isEmpty else { return nil }
        if let text = String(validating: path.bytes, as: UTF8.self), let found = uploadURLs.index(forKey: text),
            uploadURLs[found].key.utf8.elementsEqual(path.bytes)
        {
            return uploadURLs[found].value
        }
        let names = uploadURLs.keys.sorted().prefix(10).joined(separator: ", ")
        throw SettingsValue.invalid(
            "The session has a setting uploadURL for \(names), but none for \(path); use the remote name of each file.")
    }
}
