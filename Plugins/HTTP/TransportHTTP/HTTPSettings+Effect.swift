import HTTPSupport
import TransferCore

extension HTTPSettings {
    private static let forForms = ["fileField"]
    private static let prefixesForForms = ["field.", "file."]
    private static let forDownloads = "contentDisposition"
    private static let forAll = ["parallelThreshold", "transferTimeout"]

    /// Refuses what a session sets and what has no effect on its files, so that nobody relies on it.
    ///
    /// - Parameters:
    ///   - settings: The session's own.
    ///   - upload: How its files are uploaded; nil for a session that downloads.
    /// - Throws: A ``TransferError`` that names the setting.
    static func checkEffect(of settings: [String: String], upload: EndpointAddress.Upload?) throws(TransferError) {
        for key in settings.keys.sorted() {
            let isForForms = forForms.contains(key) || prefixesForForms.contains { key.hasPrefix($0) }
            switch upload {
            case nil where !forAll.contains(key) && key != forDownloads:
                throw without("The setting \(key) is for uploads, and this session downloads; remove it.")
            case .put where isForForms:
                throw without(
                    "The setting \(key) is for forms, and the files of this session go by PUT; remove it, or add the setting upload=form.")
            case .some where key == forDownloads:
                throw without("The setting \(key) is for downloads, and this session uploads; remove it.")
            case .form where key == "metadataPrefix":
                throw without(
                    "The setting \(key) is for PUT, and the files of this session go in forms; remove it, or add the setting upload=put.")
            default: continue
            }
        }
    }

    /// Another endpoint of the account may have a use for it.
    private static func without(_ message: String) -> TransferError { TransferError(.unsupported, .unsupported, message) }

    /// The URL that the session has for a file. Its name has to be the same byte for byte: texts that look the same are different files.
    ///
    /// - Returns: Nil if it has URLs for none.
    /// - Throws: A ``TransferError`` if it has some, and none for this: the file would go where nobody meant it to.
    func uploadURL(for path: RemotePath) throws(TransferError) -> String? {
        guard !uploadURLs.isEmpty else { return nil }
        if let text = String(validating: path.bytes, as: UTF8.self), let found = uploadURLs.index(forKey: text),
            uploadURLs[found].key.utf8.elementsEqual(path.bytes)
        {
            return uploadURLs[found].value
        }
        let names = uploadURLs.keys.sorted().prefix(10).joined(separator: ", ")
        throw SettingsValue.invalid(
            "The session has a setting uploadURL for \(names), and none for \(path); name each file as it is called at the server.")
    }
}
