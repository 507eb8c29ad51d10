import Locking
import ScriptedHTTP

/// A WebDAV server that stores only the names of folders (RFC 4918, sections 9.3 and 9.7).
final class FolderServer: Sendable {
    private let folders: Locked<Set<String>>
    /// The status of the response to `PUT` if the folder is missing. RFC 4918 requires 409.
    private let missing: Int

    init(_ folders: Set<String> = ["/files/"], missing: Int = 409) {
        self.folders = Locked(folders)
        self.missing = missing
    }

    func reset(to folders: Set<String> = ["/files/"]) { self.folders.withLock { $0 = folders } }

    func answer(_ request: ReceivedRequest) -> [ServerStep] {
        let path = String(request.path.prefix { $0 != "?" })
        let parent = path.split(separator: "/").dropLast().reduce("/") { $0 + $1 + "/" }
        return folders.withLock { folders in
            switch request.method {
            case "MKCOL" where folders.contains(path): return [.answer(405)]
            case "MKCOL" where !folders.contains(parent): return [.answer(409)]
            case "MKCOL":
                folders.insert(path)
                return [.answer(201)]
            case "PUT": return [.answer(folders.contains(parent) ? 201 : missing)]
            default: return [.answer(501)]
            }
        }
    }
}
