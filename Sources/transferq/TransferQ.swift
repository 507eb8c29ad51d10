import TransferCommands

@main
enum TransferQ {
    static func main() async { await CommandLineProgram.main() }
}
