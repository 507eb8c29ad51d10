import ArgumentParser

/// The root command for shell completion. It adds the common options before the command, where the parser does not know them.
struct CompletedCommand: AsyncParsableCommand {
    static let configuration = RootCommand.configuration

    @OptionGroup var common: CommonOptions
}
