import TransferCore

/// Media types (RFC 6838) by file name extension.
enum MediaType {
    /// The type for unknown extensions (RFC 2046, section 4.5.1).
    static let unknown = "application/octet-stream"

    static func ofFile(named name: [UInt8]) -> String {
        guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > 0 else { return unknown }
        return types[String(decoding: name[(dot + 1)...], as: UTF8.self).lowercased()] ?? unknown
    }

    /// The types as registered with IANA; unregistered types as in Debian's `mime.types`.
    private static let types: [String: String] = [
        "7z": "application/x-7z-compressed", "aac": "audio/aac", "aif": "audio/x-aiff", "aiff": "audio/x-aiff", "apng": "image/apng",
        "avi": "video/x-msvideo", "avif": "image/avif", "bmp": "image/bmp", "bz2": "application/x-bzip2", "css": "text/css",
        "csv": "text/csv", "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "dng": "image/x-adobe-dng",
        "epub": "application/epub+zip", "flac": "audio/flac", "gif": "image/gif", "gz": "application/gzip", "heic": "image/heic",
        "heif": "image/heif", "htm": "text/html", "html": "text/html", "ico": "image/vnd.microsoft.icon", "ics": "text/calendar",
        "jpeg": "image/jpeg", "jpg": "image/jpeg", "js": "text/javascript", "json": "application/json", "jxl": "image/jxl",
        "m4a": "audio/mp4", "m4v": "video/mp4", "md": "text/markdown", "mjs": "text/javascript", "mkv": "video/matroska",
        "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg", "mpg": "video/mpeg",
        "mts": "video/mp2t", "mxf": "application/mxf", "odp": "application/vnd.oasis.opendocument.presentation",
        "ods": "application/vnd.oasis.opendocument.spreadsheet", "odt": "application/vnd.oasis.opendocument.text", "oga": "audio/ogg",
        "ogg": "audio/ogg", "ogv": "video/ogg", "opus": "audio/ogg", "otf": "font/otf", "pdf": "application/pdf", "png": "image/png",
        "ppt": "application/vnd.ms-powerpoint",
        "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation", "rtf": "application/rtf",
        "svg": "image/svg+xml", "tar": "application/x-tar", "tif": "image/tiff", "tiff": "image/tiff", "toml": "application/toml",
        "ttf": "font/ttf", "txt": "text/plain", "wasm": "application/wasm", "wav": "audio/x-wav", "weba": "audio/webm",
        "webm": "video/webm", "webp": "image/webp", "woff": "font/woff", "woff2": "font/woff2", "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xml": "application/xml",
        "xz": "application/x-xz", "yaml": "application/yaml", "yml": "application/yaml", "zip": "application/zip",
        "zst": "application/zstd",
    ]
}
