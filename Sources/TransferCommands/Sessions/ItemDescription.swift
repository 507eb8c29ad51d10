import Foundation
import SystemPackage
import TransferCore
import TransferKit
import TransferOutput

enum ItemDescription {
    /// The maximum number of characters to show from the text of a server's response.
    private static let responseLimit = 300

    /// A table of items, followed by errors, warnings, responses and unfinished content.
    static func text(of items: [ItemStatus], _ direction: TransferDirection) -> String {
        let hasChecksums = items.contains { $0.checksum != nil }
        var table = Table(
            [("STATE", .left), ("SENT", .right), ("DONE", .right), ("SIZE", .right), ("FILE", .left), ("REMOTE NAME", .left)]
                + (hasChecksums ? [("CHECKSUM", .left)] : []))
        for item in items {
            let columns = [
                item.state.rawValue, Figures.size(item.bytesSent), Figures.size(item.bytesDone), Figures.size(item.bytesTotal),
                item.source.string, item.remoteURL ?? item.destination.description,
            ]
            table.append(columns + (hasChecksums ? [item.checksum ?? ""] : []))
        }
        return table.text + items.flatMap { lines(of: $0, direction) }.map { $0.withoutControlCharacters + "\n" }.joined()
    }

    private static func lines(of item: ItemStatus, _ direction: TransferDirection) -> [String] {
        var lines: [String] = []
        let path = item.source.string
        if let error = item.error {
            let text = error.description
            lines.append(text.contains(path) ? text : "\(path): \(text)")
        }
        lines += item.formFiles.map { file in
            let type = file.mediaType.map { " (\($0))" } ?? ""
            return "\(path): the form's field \(file.field) has \(Figures.size(file.bytesTotal)) of \(file.name)\(type)"
        }
        lines += item.warnings.map { "\(path): \($0)" }
        if let response = item.serverResponse { lines.append("\(path): the server responded \(text(of: response))") }
        if item.state == .failed, item.bytesDone > 0 {
            let keeper = direction == .upload ? "the server" : "a part file"
            // A stream without its producer can't be retried.
            let advice = item.error?.code == .producerGone ? "" : "\"transferq retry\" resumes the file; "
            lines.append(
                "\(path): \(keeper) keeps \(Figures.size(item.bytesDone)) of the unfinished file. \(advice)\"transferq remove\" deletes these "
                    + "bytes.")
        }
        if let date = item.partialExpiresAt, item.state != .completed {
            lines.append("\(path): the server keeps the unfinished upload until \(Figures.date(date))")
        }
        return lines
    }

    private static func text(of response: ServerResponse) -> String {
        let words = response.text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        let isCut = response.isTruncated || words.count > responseLimit
        let body = words.isEmpty ? "" : ": \(words.prefix(responseLimit))\(isCut ? "…" : "")"
        return "\(response.status)\(response.mediaType.map { " (\($0))" } ?? "")\(body)"
    }
}
