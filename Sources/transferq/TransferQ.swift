import Foundation
import TransferCommands

@main
enum TransferQ {
    static func main() async {
        StandardStreams.fillGaps()
        DescriptorLimit.raise()
        CrashReports.excludeSecrets()
        SchedulingPolicy.yieldToOthers()
        let (program, arguments) = (CommandLineProgram(), ProcessArguments.current)
        program.bootstrapLogging(for: arguments)
        exit(await program.run(arguments))
    }
}
