import CurlEngine
import HTTPSupport
import TransferCore
import TransportSupport

extension HTTPUpload {
    /// Sends a form: the text fields of the settings and the metadata, followed by the form's own text fields and files. Omits fields of the
    /// settings and the metadata that the form sets itself.
    ///
    /// - Throws: A ``TransferError`` if the endpoint does not receive forms, or the form can't be sent; or `CancellationError`.
    func run(_ form: UploadForm) async throws -> TransferReceipt {
        try server.plan.checkForms()
        let own = Set(
            form.parts.compactMap { part in
                if case .field(let name, _) = part { name } else { nil }
            })
        var parts = fields(except: own)
        var readers: [FileReader] = []
        for part in form.parts {
            switch part {
            case .field(let name, let value): parts.append(.field(name: name, value: value))
            case .file(let file):
                let reader = try await FileReader.open(file.source, on: disks.threads(for: file.source))
                readers.append(reader)
                let name = Array(file.name.utf8)
                parts.append(
                    .file(
                        FormBody.File(
                            field: file.field, name: name, mediaType: file.mediaType ?? mediaType(ofFile: name), reader: reader,
                            offset: file.offset, size: file.length)))
            }
        }
        let body = FormBody(parts)
        return receipt(try await send(body, from: readers), body.size)
    }

    func form(_ file: FileReader, _ size: Int64, with additionalFiles: [FormBody.File]) -> FormBody {
        let name = attempt.remotePath.lastComponent
        let last = FormBody.File(
            field: server.options.fileField, name: name, mediaType: mediaType(ofFile: name), reader: file, size: size)
        return FormBody(fields() + additionalFiles.map(FormBody.Part.file) + [.file(last)])
    }

    /// Returns the text fields of the settings and the metadata, sorted by name. The metadata takes precedence.
    ///
    /// - Parameter names: The fields to omit.
    private func fields(except names: Set<String> = []) -> [FormBody.Part] {
        var fields = server.options.fields.mapValues { self.names.fill($0, percentEncoded: false) }
        fields.merge(attempt.options.metadata) { $1 }
        return fields.filter { !names.contains($0.key) }.sorted { $0.key < $1.key }.map { .field(name: $0.key, value: $0.value) }
    }
}
