import ArgumentParser

/// The root command from which the completion scripts are generated. Unlike ``RootCommand``, it declares the common options, so the
/// shell also completes them before the command's name. The parser does not accept them there; see
/// ``CommonOptions/movingAfterCommand(_:)``.
struct CompletionRootCommand: AsyncParsableCommand {
    static let configuration = RootCommand.configuration

    @OptionGroup var common: CommonOptions
}
