import ArgumentParser
import TransferControl
import TransferCore
import TransferKit
import TransferOutput

struct AccountShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Shows an account and the sources of its credentials.",
        discussion: "Example: transferq account show studio")

    @OptionGroup var common: CommonOptions

    @Argument(help: "The account's name.", completion: Candidates.accounts, transform: TextArgument.text)
    var name: String

    func run() async throws {
        let output = CommandContext.current.output
        let status = try await common.withQueue { try await $0.existingAccount(name) }
        if common.json {
            await output.write(JSONValue(status))
        } else {
            await output.write(lines(of: status).map { $0.withoutControlCharacters + "\n" }.joined())
        }
    }

    private func lines(of status: AccountStatus) -> [String] {
        var lines = ["Name:      \(status.account.name)", "Sessions:  \(status.sessions)"]
        lines.append("Blocked:   \(status.blockingError.map(\.description) ?? "no")")
        if let limit = status.account.maxConcurrentSessions { lines.append("Limit:     \(Figures.count(limit, "concurrent session"))") }
        if let rate = status.account.rateLimit { lines.append("Max rate:  \(Figures.rate(Double(rate)))") }
        for endpoint in status.account.endpoints {
            lines.append("Endpoint:  \(endpoint.displayAddress) (\(endpoint.transport))")
            if let unavailable = status.unavailableEndpoints.first(where: { $0.location == endpoint.location }) {
                let error = unavailable.error.map { " \($0.message)" } ?? ""
                lines.append("  unavailable; the next attempt is due \(Figures.moment(unavailable.nextAttempt)).\(error)")
            }
            for reference in endpoint.credentials {
                let use = reference.name.map { "header \($0)" } ?? reference.kind.rawValue
                switch reference.source {
                case .environment(let variable): lines.append("  \(use) from the environment variable \(variable)")
                case .file(let path): lines.append("  \(use) from the file \(path)")
                case .app(let name): lines.append("  \(use) from the app, under the name \(name)")
                case .memory: lines.append("  \(use) from the memory of the process that saved the account")
                }
            }
            for (key, value) in endpoint.displaySettings { lines.append("  \(key) = \(value)") }
        }
        return lines
    }
}
