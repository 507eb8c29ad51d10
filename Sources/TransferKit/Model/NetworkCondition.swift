/// The condition of the network according to the app; see ``TransferQueue/setNetworkCondition(_:)``.
public enum NetworkCondition: String, Hashable, Sendable, Codable, CaseIterable {
    /// All sessions may use the network.
    case unconstrained
    /// The network is expensive, for example metered. Sessions whose ``SessionOptions/allowsExpensiveNetwork`` is false wait.
    case expensive
    /// There is no network: all sessions wait.
    case unavailable

    func permits(needsCheapNetwork: Bool) -> Bool {
        switch self {
        case .unconstrained: true
        case .expensive: !needsCheapNetwork
        case .unavailable: false
        }
    }
}
