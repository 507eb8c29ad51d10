public import Foundation
package import SystemPackage
public import TransferCore

/// A text field or a file of a form; see ``TransferItem/form(_:as:)``.
public struct FormPart: Hashable, Sendable {
    package enum Content: Hashable, Sendable {
        case text(String)
        case path(FilePath)
        case data(Data)
    }

    /// The name of the field; not empty. Several parts can have the same name.
    public var field: String

    package var content: Content

    /// The name of a file for the server, as UTF-8 without NUL; nil for the last component of its path. No effect on a text field.
    public var name: String?

    /// The media type of a file, such as `image/png`; nil to let the transport choose it, by default from the name. No effect on a text
    /// field.
    public var mediaType: String?

    /// Creates a text field.
    ///
    /// - Parameters:
    ///   - field: The name of the field.
    ///   - value: The value. The queue sends the value unchanged, and stores it unencrypted until the session is removed.
    public static func text(_ value: String, field: String) -> FormPart {
        FormPart(field: field, content: .text(value))
    }

    /// Creates a part for a local file.
    ///
    /// - Parameters:
    ///   - path: The file: a `FilePath`, a `String` or a file `URL`. The queue follows a symbolic link, and resolves a relative path against
    ///     its base folder; see ``Storage/folder(_:base:ownerTimeout:)``.
    ///   - field: The name of the field.
    ///   - name: The name of the file for the server; nil for the last component of the path.
    ///   - mediaType: The media type; nil to let the transport choose it.
    public static func file(
        _ path: some LocalPathConvertible, field: String = "file", name: String? = nil, mediaType: String? = nil
    ) -> FormPart {
        FormPart(field: field, content: .path(path.filePath), name: name, mediaType: mediaType)
    }

    /// Creates a part for a file whose content is in memory.
    ///
    /// `enqueue` writes the data to the queue's storage folder, as for ``TransferItem/data(_:as:)``.
    ///
    /// - Parameters:
    ///   - data: The content of the file.
    ///   - field: The name of the field.
    ///   - name: The name of the file for the server.
    ///   - mediaType: The media type; nil to let the transport choose it.
    public static func data(_ data: Data, field: String = "file", name: String, mediaType: String? = nil) -> FormPart {
        FormPart(field: field, content: .data(data), name: name, mediaType: mediaType)
    }
}

extension TransferItem {
    /// Creates an item for a form with the text fields first, then the files; otherwise the same as ``form(_:as:)``.
    ///
    /// ```swift
    /// let form = TransferItem.form(
    ///     fields: ["title": "Day one"], files: [.file("/srv/a.mov", field: "reel"), .file("/srv/a.pdf", mediaType: "application/pdf")])
    /// try await queue.enqueue(.upload(items: [form], to: "site"))
    /// ```
    ///
    /// - Parameters:
    ///   - fields: The names and values of the text fields, in order. A name can occur several times.
    ///   - files: The files, in order.
    ///   - destination: The remote name of the form; nil for the name of its first file.
    public static func form(
        fields: KeyValuePairs<String, String> = [:], files: [FormPart], as destination: (some RemotePathConvertible)? = RemotePath?.none
    ) -> TransferItem {
        form(fields.map { FormPart.text($0.value, field: $0.key) } + files, as: destination)
    }

    /// Creates an item for a form: text fields and files that are sent in one request, in the given order.
    ///
    /// The files arrive together or not at all, so the form is one item: it has one state, one receipt and one response of the server. The form's
    /// progress is the number of transferred bytes of all files, one file after the other. A form can't resume: each attempt sends the whole form. If
    /// a file is missing, or changes while the form is sent, the form fails.
    ///
    /// The account needs an endpoint whose transport can send forms (``/TransferCore/FormUploading``), such as plain HTTP with an address
    /// that begins with `https+form://`. Otherwise, `enqueue` rejects the form. `enqueue` also rejects a form without a file, with more than
    /// 100 files, or with more than 256 KiB of names and texts. For longer texts, use ``FormPart/data(_:field:name:mediaType:)``. A folder or
    /// a stream can't be part of a form.
    ///
    /// - Parameters:
    ///   - parts: The text fields and files, in order.
    ///   - destination: The remote name of the form, for placeholders in the endpoint's address and for lists of items; nil for the name of
    ///     its first file.
    public static func form(_ parts: [FormPart], as destination: (some RemotePathConvertible)? = RemotePath?.none) -> TransferItem {
        TransferItem(.form(parts), as: destination)
    }
}
