import HTTPSupport
import TransferCore

extension TUSAnswer {
    /// The error for an answer to a request for a file that is not the file.
    func downloadFailure(of path: RemotePath) -> TransferError {
        switch status {
        case 200..<300: return error(.protocolViolation, .badAnswer, "answered something else than the file \(path)")
        case 300..<400:
            let target = location.flatMap(Origin.init).map { " to \($0)" } ?? ""
            return error(.permanent, .rejected, "redirects the download\(target); list its origin in the setting origins")
        case 404, 410: return error(.permanent, .noSuchRemoteFile, "has no file \(path)")
        case 405, 501: return error(.unsupported, .unsupported, "does not give files back")
        default: return failure()
        }
    }
}
