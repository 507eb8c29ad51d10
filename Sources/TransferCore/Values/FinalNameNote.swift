package import SystemPackage

/// The note that records the final name of a part file before the part file is renamed, on a file system without hard links.
package struct FinalNameNote: Sendable, Equatable {
    /// A file with a note is smaller than this number of bytes.
    package static let maximumSize = 512

    /// The device and inode numbers of the part file.
    package var identity: [UInt64]
    /// The size of the part file.
    package var size: Int64
    /// The modification time of the part file, in nanoseconds since 1970.
    package var modificationTime: Int64
    /// Whether an empty file may reserve the final name until the rename.
    package var reservesName: Bool
    /// The final name, in the folder of the part file.
    package var name: FilePath

    package init(identity: [UInt64], size: Int64, modificationTime: Int64, reservesName: Bool, name: FilePath) {
        self.identity = identity
        self.size = size
        self.modificationTime = modificationTime
        self.reservesName = reservesName
        self.name = name
    }

    /// Parses the content of a file; nil if it is not a note. A file with the note's name can also be a second link to the part file.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count < Self.maximumSize, let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let words = String(decoding: bytes[..<end], as: UTF8.self).split(separator: " ")
        let name = FilePath(bytes: bytes[(end + 1)...])
        // Notes of earlier versions have four words.
        guard (4...5).contains(words.count), let device = UInt64(words[0]), let inode = UInt64(words[1]), let size = Int64(words[2]),
            let modificationTime = Int64(words[3]), words.count == 4 || words[4] == "reserves",
            name.components.count == 1, !name.isAbsolute, name.lastComponent?.kind == .regular
        else { return nil }
        self.init(
            identity: [device, inode], size: size, modificationTime: modificationTime, reservesName: words.count == 5, name: name)
    }

    /// The content of the file with the note.
    package var bytes: [UInt8] {
        let words = identity.map(String.init) + [String(size), String(modificationTime)] + (reservesName ? ["reserves"] : [])
        return Array("\(words.joined(separator: " "))\n".utf8) + name.bytes
    }
}
