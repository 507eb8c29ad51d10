package import CurlEngine
import Locking
package import TransportSupport

/// The resources that the attempts of one transport share.
package struct ClientResources: Sendable {
    package let engine = CurlEngine()
    package let disks: DiskThreads
    package let hook: HeaderHookCaller?
    package let quirks = ServerQuirks()
    let accepted = AcceptedCredentials()
    private let warnings = Locked<Set<String>>([])

    package init(disks: DiskThreads, hook: HeaderHookCaller?) {
        self.disks = disks
        self.hook = hook
    }

    /// Returns whether this is the first call with this warning, so that the caller logs each warning only once.
    func isFirst(_ warning: String) -> Bool { warnings.withLock { $0.insert(warning).inserted } }

    /// Creates resources with the same disk threads and header hook, but with new connections and empty caches.
    package func makeInstance() -> ClientResources { ClientResources(disks: disks, hook: hook) }
}
