import Foundation
import NIOPosix
import SystemPackage

extension RequestHandler {
    /// GET: sends a complete upload, or one range of its bytes (RFC 9110, section 14).
    @concurrent
    func download(_ upload: Upload, _ exchange: Exchange) async -> Response {
        guard upload.isComplete else { return Response(404, noStore, body: "The upload is not complete.\n") }
        let file: OpenFile
        do {
            file = try await NIOThreadPool.singleton.runIfActive { try OpenFile(upload.file) }
        } catch {
            return Response(500, body: "Cannot read the upload: \(error).\n")
        }
        let size = upload.offset
        // The ID is a valid entity tag, because complete uploads never change and IDs are never reused.
        let tag = "\"\(upload.id)\""
        let isSame = exchange["If-Range"].map { $0 == tag } ?? true
        let wanted = isSame ? exchange["Range"].flatMap { ByteRange($0) } : nil
        var headers = [("ETag", tag), ("Accept-Ranges", "bytes"), ("Content-Type", "application/octet-stream")]
        let range: Range<Int64>
        if let wanted {
            guard let resolved = wanted.resolved(for: size) else {
                recorder.responded(416, to: recorder.begin("GET", offset: nil, for: upload))
                return Response(416, headers + [("Content-Range", "bytes */\(size)")], body: "The range is beyond the upload.\n")
            }
            headers.append(("Content-Range", "bytes \(resolved.lowerBound)-\(resolved.upperBound - 1)/\(size)"))
            range = resolved
        } else {
            range = 0..<size
        }
        let status = wanted == nil ? 200 : 206
        let requestPosition = recorder.begin("GET", offset: range.lowerBound, for: upload)
        recorder.responded(status, to: requestPosition)
        var response = Response(status, headers)
        let cut = faults.takeDownloadCut(of: Int64(range.count))
        response.content = Content(file: file, range: range, cut: cut, rate: options.bytesPerSecond, faults: faults) { [recorder] in
            recorder.sent($0, of: requestPosition)
        }
        return response
    }
}

/// An open file, which is closed when its last reference is released.
final class OpenFile: Sendable {
    let descriptor: FileDescriptor

    init(_ path: FilePath) throws {
        descriptor = try FileDescriptor.open(path, .readOnly)
    }

    deinit { try? descriptor.close() }
}

/// The bytes of a file as the body of a response.
struct Content: Sendable {
    let file: OpenFile
    let range: Range<Int64>
    /// The number of bytes before the connection is cut; nil for no cut.
    let cut: Int64?
    /// The maximum number of bytes per second; nil for no limit.
    let rate: Int64?
    let faults: FaultScript
    /// Counts bytes before they are sent. A negative number removes bytes that could not be sent.
    let sent: @Sendable (Int) -> Void
}

/// The range of a `Range` header. The server ignores a header with several ranges, as RFC 9110 allows.
enum ByteRange: Hashable, Sendable {
    /// All bytes from an offset.
    case from(Int64)
    /// The bytes from an offset to another offset, inclusive.
    case between(Int64, Int64)
    /// The given number of bytes at the end.
    case last(Int64)

    init?(_ header: String) {
        guard header.lowercased().hasPrefix("bytes=") else { return nil }
        let ends = header.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false).map { $0.trimming(" ") }
        guard ends.count == 2 else { return nil }
        switch (Int64(digits: ends[0]), Int64(digits: ends[1])) {
        case (let first?, let last?) where first <= last: self = .between(first, last)
        case (let first?, nil) where ends[1].isEmpty: self = .from(first)
        case (nil, let count?) where ends[0].isEmpty: self = .last(count)
        default: return nil
        }
    }

    /// Returns the range within content of this size; nil if the content has no byte in the range.
    func resolved(for size: Int64) -> Range<Int64>? {
        switch self {
        case .from(let first): first < size ? first..<size : nil
        case .between(let first, let last): first < size ? first..<min(size, last == .max ? last : last + 1) : nil
        case .last(let count): count > 0 && size > 0 ? max(0, size - count)..<size : nil
        }
    }
}
