import Foundation
import TransferCommands

@main
enum TransferQ {
    static func main() async {
        StandardStreams.fillGaps()
        CrashReports.leaveSecretsOut()
        exit(await CommandLineProgram().run(ProcessArguments.current))
    }
}
