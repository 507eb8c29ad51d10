import Foundation
import TransferCommands

@main
enum TransferQ {
    static func main() async {
        exit(await CommandLineProgram().run(ProcessArguments.current))
    }
}
