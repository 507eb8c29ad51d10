/// What an app knows of the network that its sessions use; see ``TransferQueue/setNetworkCondition(_:)``.
public enum NetworkCondition: String, Hashable, Sendable, Codable, CaseIterable {
    /// All sessions may use it.
    case unconstrained
    /// Sessions that do not allow it (``SessionOptions/allowsExpensiveNetwork``) wait.
    case expensive
    /// There is none: all sessions wait.
    case unavailable

    func permits(_ entry: Entry) -> Bool {
        permits(needsCheapNetwork: entry.conditions.contains(.needsCheapNetwork))
    }

    func permits(needsCheapNetwork: Bool) -> Bool {
        switch self {
        case .unconstrained: true
        case .expensive: !needsCheapNetwork
        case .unavailable: false
        }
    }
}
