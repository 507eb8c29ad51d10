import Foundation
import SystemPackage
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A root folder, below which tests create folders and files.
struct FolderTree {
    let root: FilePath

    init(_ root: FilePath) throws {
        self.root = root
        try FileManager.default.createDirectory(atPath: root.string, withIntermediateDirectories: true)
    }

    func path(_ relative: String) -> FilePath {
        root.pushing(FilePath(relative))
    }

    @discardableResult
    func folder(_ relative: String) throws -> FilePath {
        try FileManager.default.createDirectory(atPath: path(relative).string, withIntermediateDirectories: true)
        return path(relative)
    }

    @discardableResult
    func file(_ relative: String, _ content: String = "") throws -> FilePath {
        try folder(FilePath(relative).removingLastComponent().string)
        try Data(content.utf8).write(to: URL(fileURLWithPath: path(relative).string))
        return path(relative)
    }

    func link(_ relative: String, to target: String) throws {
        try FileManager.default.createSymbolicLink(atPath: path(relative).string, withDestinationPath: target)
    }

    func fifo(_ relative: String) throws {
        guard unsafe path(relative).withPlatformString({ unsafe mkfifo($0, 0o600) }) == 0 else { throw Errno(rawValue: errno) }
    }

    func fill(files: Int, using generator: inout some RandomNumberGenerator) throws {
        var folders = [""]
        for number in 0..<files {
            if Int.random(in: 0..<4, using: &generator) == 0, let parent = folders.randomElement(using: &generator) {
                let folder = "\(parent)\(Int.random(in: 0..<50, using: &generator))-\(number)/"
                folders.append(folder)
                try self.folder(folder)
            }
            guard let folder = folders.randomElement(using: &generator) else { continue }
            try file("\(folder)\(Int.random(in: 0..<10_000, using: &generator)).\(number)", "content of \(number)")
        }
    }

    /// Returns the relative paths of all regular files below the root, according to Foundation.
    func files() throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: root.string).filter {
            try FileManager.default.attributesOfItem(atPath: path($0).string)[.type] as? FileAttributeType == .typeRegular
        }
    }
}

extension FilePath {
    func setPermissions(_ mode: Int) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: string)
    }
}

extension [ItemStatus] {
    /// Returns the remote names of the items in the given state.
    func destinations(_ state: ItemState = .pending) -> [String] {
        filter { $0.state == state }.map(\.destination.description)
    }
}
