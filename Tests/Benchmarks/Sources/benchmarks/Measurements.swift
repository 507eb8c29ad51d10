import Foundation

/// All runs of one program in one benchmark.
struct Measurements: Codable {
    var benchmark: String
    var program: String
    var megabytes: Double
    var costs: [ResourceUsage]

    var wall: Double { median(costs.map(\.wallSeconds)) }
    var cpu: Double { median(costs.map(\.cpuSeconds)) }
    var peakMiB: Double { median(costs.map { Double($0.peakKiB) / 1024 }) }
    var rate: Double { megabytes / wall }

    private func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        let middle = sorted.count / 2
        return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }
}

/// Returns the table to print. The columns `rate ×` and `CPU ×` compare each program with the last program of the same benchmark.
func table(_ results: [Measurements]) -> String {
    func cell(_ value: Double, _ digits: Int = 2) -> String {
        let text = String(format: "%.\(digits)f", value)
        return String(repeating: " ", count: max(0, 10 - text.count)) + text
    }
    var lines: [String] = []
    var names: [String] = []
    for result in results where !names.contains(result.benchmark) { names.append(result.benchmark) }
    for name in names {
        let group = results.filter { $0.benchmark == name }
        lines.append(name)
        lines.append(
            "  \("program".padding(toLength: 16, withPad: " ", startingAt: 0))      MiB/s     rate ×     wall s      CPU s      CPU ×   peak MiB"
        )
        guard let peer = group.last else { continue }
        for result in group {
            lines.append(
                "  " + result.program.padding(toLength: 16, withPad: " ", startingAt: 0)
                    + [
                        cell(result.rate, result.rate < 100 ? 2 : 0), cell(result.rate / peer.rate), cell(result.wall), cell(result.cpu),
                        cell(result.cpu / peer.cpu), cell(result.peakMiB, 1),
                    ].joined(separator: " "))
        }
    }
    return lines.joined(separator: "\n")
}
