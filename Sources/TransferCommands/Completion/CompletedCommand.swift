import ArgumentParser

/// The program as shells complete it: with the options of all commands before the command too, where the parser does not know them.
struct CompletedCommand: AsyncParsableCommand {
    static let configuration = RootCommand.configuration

    @OptionGroup var common: CommonOptions
}
