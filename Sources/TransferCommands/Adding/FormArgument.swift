import ArgumentParser
import Foundation
import SystemPackage
import TransferControl
import TransferKit

/// A value of `--form`: `NAME=TEXT` for a text field, or `NAME=@PATH`, optionally followed by `;name=NAME` and `;type=TYPE`, for a file.
struct FormArgument: ExpressibleByArgument {
    let part: FormPart
    /// The local file; nil for a text field.
    let path: FilePath?

    init?(argument: String) {
        let bytes = ProcessArguments.bytes(of: argument)
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")), equals > 0,
            let field = String(validating: bytes[..<equals], as: UTF8.self)
        else { return nil }
        var rest = Array(bytes[(equals + 1)...])
        guard rest.first == UInt8(ascii: "@") else {
            guard let text = String(validating: rest, as: UTF8.self) else { return nil }
            (part, path) = (.text(text, field: field), nil)
            return
        }
        rest.removeFirst()
        var (name, type): (String?, String?) = (nil, nil)
        // Read the options from the end, because the path before them can contain semicolons.
        while let semicolon = rest.lastIndex(of: UInt8(ascii: ";")), let option = String(validating: rest[semicolon...], as: UTF8.self) {
            if name == nil, option.hasPrefix(";name=") {
                name = String(option.dropFirst(6))
            } else if type == nil, option.hasPrefix(";type=") {
                type = String(option.dropFirst(6))
            } else {
                break
            }
            rest = Array(rest[..<semicolon])
        }
        guard !rest.isEmpty else { return nil }
        let path = FilePath(bytes: rest).absolute
        self.path = path
        part = .file(path, field: field, name: name, mediaType: type)
    }
}
