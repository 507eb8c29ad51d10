import Foundation
import TransferCommands

@main
enum TransferQ {
    static func main() async {
        CrashReports.leaveSecretsOut()
        exit(await CommandLineProgram().run(ProcessArguments.current))
    }
}
