import ArgumentParser

/// The root command for shell completion. Also completes common options before the command, where the parser does not accept them.
struct CompletedCommand: AsyncParsableCommand {
    static let configuration = RootCommand.configuration

    @OptionGroup var common: CommonOptions
}
