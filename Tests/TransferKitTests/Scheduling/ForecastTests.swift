import Testing
import TransferKit

/// Forecasts, compared with start and end times that were computed by hand.
@Suite struct ForecastTests {
    /// A test case. Describes each session as `bytes@rate`, followed by words for its other properties, for example `limit=5`.
    struct Case: CustomTestStringConvertible, Sendable {
        var name: String
        var queue = Forecast.Limits(sessions: 1)
        var accounts: [AccountKey: Forecast.Limits] = [:]
        var isStrict = false
        var running: [String] = []
        var waiting: [String]
        /// The times of each waiting session in seconds, as `start-end`. Unknown times are left out.
        var expected: String

        var testDescription: String { name }
    }

    static let cases = [
        Case(name: "nothing runs", waiting: ["100@10", "50@10"], expected: "0-10 10-15"),
        Case(name: "the running session ends first", running: ["30@10"], waiting: ["100@10", "50@10"], expected: "3-13 13-18"),
        Case(
            name: "two slots", queue: Forecast.Limits(sessions: 2), running: ["30@10"], waiting: ["100@10", "50@10", "10@10"],
            expected: "0-10 3-8 8-9"),
        Case(name: "no known rate", running: ["30"], waiting: ["100"], expected: "-"),
        Case(name: "a free slot, but no known rate", waiting: ["100", "50"], expected: "0- -"),
        Case(
            name: "a session with an unknown end keeps its slot", queue: Forecast.Limits(sessions: 2), running: ["30"],
            waiting: ["100@10", "50@10"], expected: "0-10 10-15"),
        Case(name: "no remaining bytes", waiting: ["0", "10@10"], expected: "0-0 0-1"),
        Case(name: "the session's own limit", waiting: ["100@10 limit=5", "10@10"], expected: "0-20 20-21"),
        Case(
            name: "sessions share the queue's limit, and a completed one returns its share", queue: Forecast.Limits(sessions: 2, rate: 10),
            waiting: ["50@100", "100@100", "10@100"], expected: "0-10 0-16 10-12"),
        Case(
            name: "a slower session leaves a larger share to the other session", queue: Forecast.Limits(sessions: 2, rate: 10),
            waiting: ["20@2", "80@100"],
            expected: "0-10 0-10"),
        Case(
            name: "an account's limit applies only to its sessions", queue: Forecast.Limits(sessions: 3),
            accounts: [1: Forecast.Limits(rate: 10)], waiting: ["50@100", "50@100", "100@10 account=2"], expected: "0-10 0-10 0-10"),
        Case(
            name: "sessions of another account pass if an account has no free slot", queue: Forecast.Limits(sessions: 2),
            accounts: [1: Forecast.Limits(sessions: 1)],
            waiting: ["100@10", "50@10", "20@10 account=2"], expected: "0-10 10-15 0-2"),
        Case(name: "a paused session keeps its slot", queue: Forecast.Limits(sessions: 1, paused: 1), waiting: ["10@10"], expected: "-"),
        Case(
            name: "a paused session keeps a slot of its account", queue: Forecast.Limits(sessions: 3, paused: 1),
            accounts: [1: Forecast.Limits(sessions: 1, paused: 1)], waiting: ["10@10", "20@10 account=2"], expected: "- 0-2"),
        Case(name: "a session with a start time lets other sessions pass", waiting: ["100@10 wait=5", "30@10"], expected: "5-15 0-3"),
        Case(name: "a due session waits for a free slot", waiting: ["100@10 wait=5", "80@10", "10@10"], expected: "8-18 0-8 18-19"),
        Case(name: "a session depends on another", waiting: ["10@10 after=2", "20@10", "30@10"], expected: "2-3 0-2 3-6"),
        Case(name: "a session depends on a running one", running: ["40@10"], waiting: ["10@10 after=100"], expected: "4-5"),
        Case(name: "a session depends on a missing one", waiting: ["10@10 after=77", "10@10"], expected: "- 0-1"),
        Case(name: "other sessions pass a stuck one", waiting: ["10@10 stuck", "10@10"], expected: "- 0-1"),
        Case(
            name: "no session passes a stuck one in a strict queue", isStrict: true, waiting: ["10@10", "10@10 stuck", "10@10"],
            expected: "0-1 - -"),
        Case(name: "a strict queue waits for a time", isStrict: true, waiting: ["10@10 wait=5", "10@10"], expected: "5-6 6-7"),
        Case(
            name: "a permitted session passes in a strict queue", isStrict: true, waiting: ["10@10 stuck", "10@10 passes", "10@10"],
            expected: "- 0-1 -"),
        Case(name: "a rate too low for a known end", waiting: ["1000000000@0.000001", "1@1"], expected: "0- -"),
    ]

    @Test(arguments: cases) func matchesExpectedTimes(_ example: Case) throws {
        let waiting = try example.waiting.enumerated().map { try Self.session($0.element, key: SessionKey($0.offset + 1)) }
        let forecast = Forecast(
            queue: example.queue, accounts: example.accounts, isStrict: example.isStrict,
            running: try example.running.enumerated().map { try Self.session($0.element, key: SessionKey($0.offset + 100)) },
            waiting: waiting)
        let line = waiting.map { session in
            let times = forecast.times[session.key] ?? Forecast.Times()
            return "\(Self.text(times.start))-\(Self.text(times.end))"
        }
        #expect(line.joined(separator: " ") == example.expected)
    }

    private static func text(_ duration: Duration?) -> String {
        duration.map { String(Int($0.inSeconds.rounded())) } ?? ""
    }

    private static func session(_ text: String, key: SessionKey) throws -> Forecast.Session {
        let words = text.split(separator: " ")
        let numbers = try #require(words.first).split(separator: "@").compactMap { Double($0) }
        var session = Forecast.Session(key: key, account: 1, bytes: Int64(numbers[0]), rate: numbers.count > 1 ? numbers[1] : nil)
        for word in words.dropFirst() {
            let fields = word.split(separator: "=")
            let value = fields.count > 1 ? Int64(fields[1]) ?? 0 : 0
            switch fields[0] {
            case "limit": session.limit = Double(value)
            case "account": session.account = AccountKey(value)
            case "wait": session.wait = .seconds(value)
            case "after": session.predecessors = [value]
            case "stuck": session.isStuck = true
            default: session.passes = true
            }
        }
        return session
    }

    @Test func forecastsThousandSessionsWithLimits() {
        let waiting = (1...1_000).map { Forecast.Session(key: SessionKey($0), account: 1, bytes: 1_000_000_007, rate: 1e9 + Double($0)) }
        let forecast = Forecast(
            queue: Forecast.Limits(sessions: 50, rate: 1e12), accounts: [1: Forecast.Limits(rate: 1e11)], running: [], waiting: waiting)
        #expect(forecast.times.values.allSatisfy { $0.end != nil })
        #expect(forecast.times.count == 1_000)
    }
}
