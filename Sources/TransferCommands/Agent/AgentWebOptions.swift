import ArgumentParser

struct AgentWebOptions: ParsableArguments {
    @Flag(help: "Also serve the page; see transferq web.")
    var web = false

    @Option(help: ArgumentHelp("The page's address (default: 127.0.0.1:8420).", valueName: "address"), transform: TextArgument.text)
    var webListen: String?

    func validate() throws {
        if webListen != nil, !web { throw ValidationError("--web-listen needs --web.") }
    }

    /// The given options, as arguments for `agent run`.
    var arguments: [String] { (web ? ["--web"] : []) + (webListen.map { ["--web-listen", $0] } ?? []) }
}
