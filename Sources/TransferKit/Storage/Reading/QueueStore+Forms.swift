import Foundation
import GRDB
package import SystemPackage
import TransferCore

extension QueueStore {
    func hasForms(of key: SessionKey) async throws -> Bool {
        try await read { db in
            try Bool.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT EXISTS (SELECT 1 FROM file WHERE session = ?1 AND kind = 'form')
                            OR EXISTS (SELECT 1 FROM item WHERE session = ?1 AND kind = 'form')
                        """), arguments: [key]) ?? false
        }
    }

    /// Returns the parts of a form.
    ///
    /// - Throws: An error of the database; or ``TransferCore/TransferError`` if the row is missing or damaged.
    func form(of key: SessionKey, position: Int64) async throws -> FormContent {
        let text = try await read { db in
            try String.fetchOne(
                db.cachedStatement(sql: "SELECT form FROM file WHERE session = ? AND position = ?"), arguments: [key, position])
        }
        guard let form: FormContent = try? StoreCoding.decodeIfPresent(from: text) else {
            throw TransferError(.permanent, .internalFailure, "The description of the form is damaged. Enqueue the form again.")
        }
        return form
    }
}

extension QueueStore {
    /// Returns the files of a form; empty for other items, and for a damaged form.
    ///
    /// - Parameter stored: The value of the column `form`.
    static func formFiles(_ stored: String?, _ sources: SourceFolders) -> [FormFileStatus] {
        let form: FormContent? = try? StoreCoding.decodeIfPresent(from: stored)
        return form?.statuses(sources) ?? []
    }
}

extension [FormFileStatus] {
    /// The local file to show for a form; nil if the form has no local files.
    var shownSource: FilePath? { lazy.compactMap(\.source).first }
}

extension FormContent {
    /// The files of the form, for an ``ItemStatus``.
    ///
    /// - Parameter sources: The folders to which relative paths refer. The default value is for forms with absolute paths only.
    package func statuses(_ sources: SourceFolders = SourceFolders(base: nil, spool: "/", workingFolder: "/")) -> [FormFileStatus] {
        parts.compactMap { part in
            part.file.map { file in
                FormFileStatus(
                    field: part.field, name: file.name, source: file.localPath(sources), mediaType: file.mediaType,
                    bytesTotal: min(max(0, file.size), FileSize.maximum))
            }
        }
    }
}

extension FormContent.File {
    /// The path of the local file; nil for in-memory data.
    package func localPath(_ sources: SourceFolders) -> FilePath? {
        path.map { FilePath(bytes: sources.path(.file, [UInt8]($0))) }
    }
}
