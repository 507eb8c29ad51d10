package import Foundation
import SystemPackage
import TransferCore

extension ItemDrafting {
    /// The maximum number of files in a form. Each attempt opens all files of the form.
    private static let maximumFormFiles = 100
    /// The maximum number of bytes of a form's names and text values, which the database keeps in one row.
    private static let maximumFormText = 256 << 10

    /// Creates a draft (``ItemDraft``) of a form. Blocks.
    ///
    /// - Throws: A ``TransferError`` for the first invalid part, or for a limit that the form exceeds.
    mutating func draft(of item: TransferItem, with parts: [FormPart]) throws(TransferError) -> ItemDraft {
        guard !item.keepsCopy else {
            throw Self.invalid("A form can't keep copies of its files. Remove keepsCopy, or add the content with FormPart.data.")
        }
        var form = FormContent()
        var (size, offset, textSize) = (Int64(0), Int64(0), 0)
        for part in parts {
            let stored = try stored(part, offset: offset, item.symbolicLinks)
            form.parts.append(stored)
            textSize += stored.field.utf8.count + (stored.text ?? stored.file?.name ?? "").utf8.count
            guard let file = stored.file else { continue }
            size.addSaturated(file.size)
            if file.path == nil { offset += file.size }
        }
        guard let first = form.files.first else {
            throw Self.invalid("A form needs at least one file. Add one with FormPart.file or FormPart.data.")
        }
        guard form.files.count <= Self.maximumFormFiles else {
            throw Self.invalid(
                "The form with \(first.name) has \(form.files.count) files, but a form can have at most \(Self.maximumFormFiles). Divide them among "
                    + "several forms.")
        }
        guard textSize <= Self.maximumFormText else {
            throw Self.invalid(
                "The names and texts of the form with \(first.name) exceed \(Self.maximumFormText) bytes. Send long texts as files, with "
                    + "FormPart.data.")
        }
        guard size <= FileSize.maximum else { throw FileSize.tooLarge(FilePath(first.name)) }
        if let data = item.data { spoolContents.append(.data(data)) }
        let destination = if let given = item.destination { given } else { try RemotePath(first.name) }
        return ItemDraft(
            kind: .form, source: form.hasData ? Data() : Data(UUID().uuidString.utf8),
            destination: Data(destination.bytes), size: size,
            symbolicLinks: item.symbolicLinks == .skip && resolvesLinks ? .skip : .follow, uploadCapability: item.uploadCapability,
            creationCapability: item.creationCapability, form: form)
    }

    /// Checks a part of a form, and returns the part as the database stores it.
    ///
    /// - Parameter offset: The offset, in bytes, of the part's data in the ``Spool`` file that holds the form's in-memory data.
    /// - Throws: A ``TransferError`` if the part is invalid, or its file can't be sent.
    private mutating func stored(
        _ part: FormPart, offset: Int64, _ symbolicLinks: SymbolicLinkPolicy
    ) throws(TransferError) -> FormContent.Part {
        guard !part.field.isEmpty, !part.field.utf8.contains(0) else {
            throw Self.invalid("The name of a form's field is empty or contains a NUL character. Choose another name.")
        }
        if case .text(let text) = part.content { return FormContent.Part(field: part.field, text: text) }
        // The media type is sent in a header line, in which a line break would begin another line.
        if let type = part.mediaType, type.isEmpty || type.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
            throw Self.invalid(
                "The media type of the field \(part.field.debugDescription) is empty or contains a control character. Write a type such as "
                    + "image/png, or omit it.")
        }
        let name = try fileName(of: part)
        var file = FormContent.File(name: name, mediaType: part.mediaType, size: Int64(part.data?.count ?? 0))
        if case .path(let given) = part.content {
            var path = absolute(given)
            let local = try LocalFile(at: path)
            guard case .file(let size) = local else {
                throw TransferError(
                    .sourceLost, .notARegularFile, "\(path) is a folder. A form can only contain files. Add the files of the folder.")
            }
            guard size <= FileSize.maximum else { throw FileSize.tooLarge(path) }
            path = try resolvingLinks(in: path, local, symbolicLinks)
            (file.path, file.size) = (Data(sources.stored(path)), size)
        } else {
            file.offset = offset
        }
        return FormContent.Part(field: part.field, file: file)
    }

    /// Returns the name under which the form sends a file. Some form handlers silently drop a file whose name is not UTF-8.
    ///
    /// - Throws: A ``TransferError`` if the name is empty, contains a NUL character or is not UTF-8.
    private func fileName(of part: FormPart) throws(TransferError) -> String {
        if let name = part.name {
            guard !name.isEmpty, !name.utf8.contains(0) else {
                throw Self.invalid(
                    "The name of the file in the field \(part.field.debugDescription) is empty or contains a NUL character. Choose another name."
                )
            }
            return name
        }
        guard case .path(let path) = part.content, !path.isEmpty else {
            throw TransferError(.sourceLost, .noSuchFile, "A file of a form has an empty path.")
        }
        guard let name = String(validating: try Self.name(of: path), as: UTF8.self) else {
            throw TransferError(
                .sourceLost, .unsafeName,
                "The name of \(path) is not UTF-8, which forms require. Give the file another name for the server.")
        }
        return name
    }

    private static func invalid(_ message: String) -> TransferError { TransferError(.permanent, .unsupported, message) }
}

extension FormPart {
    /// The content of an in-memory file; nil for other parts.
    package var data: Data? {
        if case .data(let data) = content { data } else { nil }
    }
}

extension TransferItem {
    package var isForm: Bool {
        if case .form = content { true } else { false }
    }

    /// The name of the first file of a form; nil for other items.
    var shownFormName: String? {
        guard case .form(let parts) = content else { return nil }
        return parts.lazy.compactMap { part in
            switch part.content {
            case .text: nil
            case .path(let path): part.name ?? path.lastComponent?.string
            case .data: part.name
            }
        }.first
    }
}
