import ArgumentParser
import TransferKit
import TransferOutput

/// The completed sessions that stay in the queue: all (`forever`), the last N, or the sessions completed within a time such as `7d`.
struct RetentionArgument: ExpressibleByArgument {
    let retention: Retention

    private static let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]

    init?(argument: String) {
        if argument == "forever" {
            retention = .keepAll
        } else if let count = Int(argument), count >= 0 {
            retention = .count(count)
        } else {
            guard let unit = argument.last.flatMap({ Self.units[$0] }), let number = Int32(argument.dropLast()), number >= 0 else {
                return nil
            }
            retention = .age(.seconds(Int64(number) * unit))
        }
        guard (try? retention.validate()) != nil else { return nil }
    }
}

extension Retention {
    var text: String {
        switch self {
        case .keepAll: return "kept forever"
        case .count(0), .age(Duration.zero): return "not kept"
        case .count(let count): return "only the last \(Figures.count(count, "session")) kept"
        case .age(let age):
            let seconds = max(1, age.components.seconds)
            let (unit, length): (String, Int64) =
                seconds % 86_400 == 0 ? ("d", 86_400) : seconds % 3_600 == 0 ? ("h", 3_600) : seconds % 60 == 0 ? ("m", 60) : ("s", 1)
            return "kept for \(seconds / length)\(unit)"
        }
    }
}
