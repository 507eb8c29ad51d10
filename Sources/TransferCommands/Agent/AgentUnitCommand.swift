import ArgumentParser
import SystemPackage
import TransferCore
import TransferOutput

struct AgentUnitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unit", abstract: "Prints a systemd unit for the agent.",
        discussion: """
            First: mkdir -p ~/.config/systemd/user
            Example: transferq agent unit > ~/.config/systemd/user/transferq.service
            Then: systemctl --user enable --now transferq. To run the agent without a login: loginctl enable-linger
            """)

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let words = try [AgentLaunch.executable.bytes] + ["agent", "run", "--store"].map { Array($0.utf8) } + [common.folder().bytes]
        let text = """
            [Unit]
            Description=transferq, a file transfer queue
            Documentation=man:transferq(1)

            [Service]
            Type=exec
            ExecStart=\(words.map(Self.quoted).joined(separator: " "))
            Restart=on-failure
            RestartSec=5
            TimeoutStopSec=60
            UMask=0077
            LimitCORE=0
            NoNewPrivileges=yes
            LockPersonality=yes
            MemoryDenyWriteExecute=yes
            RestrictRealtime=yes
            RestrictNamespaces=yes
            RestrictSUIDSGID=yes
            RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
            SystemCallArchitectures=native
            Environment=\(CrashReports.variable.name)=\(CrashReports.variable.value)

            [Install]
            WantedBy=default.target

            """
        await CommandContext.current.output.write(common.json ? (["unit": .string(text)] as JSONValue).text + "\n" : text)
    }

    /// Quotes a word, which may contain any bytes, for a command line in a unit file (systemd.service(5), systemd.syntax(7)).
    static func quoted(_ word: [UInt8]) -> String {
        var text = ""
        for byte in word {
            switch byte {
            case UInt8(ascii: "%"): text += "%%"
            case UInt8(ascii: "$"): text += "$$"
            case UInt8(ascii: "\\"): text += "\\\\"
            case UInt8(ascii: "\""): text += "\\\""
            case 0x20...0x7E: text.unicodeScalars.append(Unicode.Scalar(byte))
            default: text += "\\x" + (byte < 0x10 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return "\"\(text)\""
    }
}
