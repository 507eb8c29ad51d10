import Foundation
import SystemPackage
import TUSLoopback
import Testing
import TransferKit

@Suite(.serialized) struct CompletionTests {
    @Test(arguments: ["bash", "zsh", "fish"])
    func generatesScriptForEachShell(shell: String) async throws {
        let program = try TransferQ()
        let script = try await program.succeed("--generate-completion-script", shell)
        #expect(script.diagnostics == "")
        for command in HelpTests.commands { #expect(script.output.contains(command.split(separator: " ").last ?? ""), "\(command)") }
        #expect(!FileManager.default.fileExists(atPath: program.store.string))
    }

    /// Calls the completion function as bash does. The last word is the one to complete.
    private func completions(_ program: TransferQ, _ words: String...) async throws -> [String] {
        let script = """
            PATH="$1:$PATH"; shift
            source <(transferq --generate-completion-script bash)
            COMP_WORDS=(transferq "$@"); COMP_CWORD=$#; COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}
            "$(complete -p transferq | sed 's/.*-F \\([^ ]*\\).*/\\1/')" transferq "${@: -1}" "${COMP_WORDS[COMP_CWORD - 1]}"
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let folder = TransferQ.executable.removingLastComponent()
        let shell = try program.start("/bin/bash", (["-c", script, "bash", folder.string] + words).map { Array($0.utf8) })
        let result = await shell.result()
        #expect(result.diagnostics == "")
        return result.lines.map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    @Test func completesInFish() async throws {
        let program = try TransferQ()
        let script = "set PATH $argv[1] $PATH; transferq --generate-completion-script fish | source; complete -C $argv[2]"
        let folder = TransferQ.executable.removingLastComponent()
        for (line, expected) in [
            ("transferq queue st", ["start", "status", "stop"]), ("transferq list --state wai", ["waiting"]),
        ] {
            let shell = try program.start("/usr/bin/fish", ["-c", script, folder.string, line].map { Array($0.utf8) })
            let result = await shell.result()
            let words = result.lines.map { String($0.prefix { $0 != "\t" }) }
            #expect(words.sorted() == expected && result.diagnostics == "", "\(result.testDescription)")
        }
    }

    /// zsh completes only on a terminal, so this test checks only that zsh accepts the script.
    @Test func loadsInZsh() async throws {
        let program = try TransferQ()
        let script = """
            PATH="$1:$PATH"; autoload -U compinit; compinit -u -D
            source <(transferq --generate-completion-script zsh); print -r -- "${_comps[transferq]}"
            """
        let folder = TransferQ.executable.removingLastComponent()
        let shell = try program.start("/usr/bin/zsh", ["-f", "-c", script, "zsh", folder.string].map { Array($0.utf8) })
        let result = await shell.result()
        #expect(result.lines == ["_transferq"] && result.diagnostics == "", "\(result.testDescription)")
    }

    @Test func completesInBash() async throws {
        let program = try TransferQ()
        #expect(try await completions(program, "acc") == ["account"])
        #expect(try await completions(program, "queue", "st").sorted() == ["start", "status", "stop"])
        #expect(try await completions(program, "list", "--state", "wai") == ["waiting"])
        #expect(try await completions(program, "run", "--progress", "b") == ["bars"])
        #expect(try await completions(program, "show", "") == [])
        // Completion does not create a queue.
        #expect(!FileManager.default.fileExists(atPath: program.store.string))

        for account in ["studio", "stage"] { try await program.succeed("account", "add", account, "https://one.example/") }
        try program.folder.file("reel", size: 1)
        let id = try await program.succeed("add", "stage", "reel", "--tag", "night").lines[0]
        #expect(try await completions(program, "account", "show", "st").sorted() == ["stage", "studio"])
        #expect(try await completions(program, "add", "stu") == ["studio"])
        #expect(try await completions(program, "add", "stage", "re") == ["reel"])
        #expect(try await completions(program, "show", String(id.prefix(3))) == [id])
        #expect(try await completions(program, "cancel", "--tag", "n") == ["night"])
        #expect(try await completions(program, "cancel", "--account", "sta") == ["stage"])

        // Common options may come before the command. The completions come from the queue that --store names.
        var elsewhere = try TransferQ()
        elsewhere.store = elsewhere.folder.path.appending("elsewhere")
        let store = program.store.string
        #expect(try await completions(elsewhere, "--sto") == ["--store"])
        #expect(try await completions(elsewhere, "--store", store, "acc") == ["account"])
        #expect(try await completions(elsewhere, "--store", store, "list", "--state", "wai") == ["waiting"])
        #expect(try await completions(elsewhere, "--store", store, "--json", "account", "show", "stu") == ["studio"])
        #expect(try await completions(elsewhere, "--store", store, "show", String(id.prefix(3))) == [id])

        // If the queue's owner can't be reached, completion does not wait for the owner, and offers no names.
        let queue = try await TransferQueue(storage: .folder(program.store), transports: [])
        let blocked = try await completions(program, "account", "show", "st")
        await queue.shutdown()
        #expect(blocked == [])
    }
}
