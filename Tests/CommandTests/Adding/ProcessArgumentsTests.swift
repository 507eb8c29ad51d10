import SystemPackage
import Testing
import TransferCommands

@Suite struct ProcessArgumentsTests {
    @Test func preservesAllBytes() {
        var generator = SplitMix(state: 7)
        for _ in 0..<20_000 {
            // Bytes that begin, continue or break UTF-8 sequences, including the bytes that `ProcessArguments` uses to escape invalid
            // bytes.
            let interesting: [UInt8] = [0x61, 0x80, 0xBF, 0xC3, 0xE2, 0xF4, 0x8F, 0x9C, 0x9F, 0xFF, 0x2F]
            let bytes = (0..<Int.random(in: 0...9, using: &generator)).compactMap { _ in interesting.randomElement(using: &generator) }
            #expect(ProcessArguments.bytes(of: ProcessArguments.string(of: bytes)) == bytes)
        }
    }

    /// In `/proc`, a NUL byte ends each word of a command line (proc_pid_cmdline(5)).
    @Test(arguments: [
        ("transferq\0a\0\0b c\0", ["transferq", "a", "", "b c"]), ("transferq\0\0", ["transferq", ""]), ("transferq", ["transferq"]),
    ])
    func splitsCommandLine(line: String, words: [String]) {
        #expect(ProcessArguments.split(Array(line.utf8)).map { String(decoding: $0, as: UTF8.self) } == words)
    }

    /// If the dynamic loader started the program, the command line begins with the loader and its options (ld.so(8)).
    @Test(arguments: [
        ("ld.so\0./transferq\0list\0", "./transferq\0list\0", "./transferq\0list\0"),
        ("ld.so\0--library-path\0lib\0./transferq\0", "./transferq\0", "./transferq\0"),
        ("ld.so\0./transferq\0", "other\0", "ld.so\0./transferq\0"), ("ld.so\0", "", "ld.so\0"), ("ld.so\0", "ld.so\0", "ld.so\0"),
    ])
    func removesLoader(line: String, program: String, expected: String) {
        func words(_ line: String) -> [[UInt8]] { ProcessArguments.split(Array(line.utf8)) }
        #expect(ProcessArguments.withoutLoader(words(line), program: words(program)) == words(expected))
    }

    /// A statically linked standard library looks for the arguments next to the environment. A preloaded library can move the
    /// environment before `main` begins (setenv(3)).
    @Test func readsArgumentsWithMovedEnvironment() async throws {
        var program = try TransferQ()
        let code = """
            #include <stdlib.h>
            #include <unistd.h>
            __attribute__((constructor)) static void move(void) { setenv("ADDED", "1", 1); write(2, "moved\\n", 6); }
            """
        let (source, library) = (try program.folder.file("move.c", bytes: Array(code.utf8)), program.folder.path.appending("move.so"))
        let compile = ["cc", "-shared", "-fPIC", "-o", library.string, source.string].map { Array($0.utf8) }
        try await program.start("/usr/bin/env", compile).result().expectSuccess()
        program.environment["LD_PRELOAD"] = library.string
        let added = try await program.succeed("account", "add", "day \u{E9}", "https://one.example/")
        #expect(added.diagnostics.hasPrefix("moved\n"), "\(added.testDescription)")
        // This command restarts its process, to keep secrets out of crash reports.
        let checked = try await program.run("account", "check", "missing")
        #expect(checked.status == 4 && checked.diagnostics.contains("\"missing\""), "\(checked.testDescription)")
        #expect(try await program.succeed("account", "list", "--json").objects().map { $0["name"] as? String } == ["day \u{E9}"])
    }

    @Test(arguments: ["", "plain", "ü – 漢字 🎞", "a\nb"])
    func keepsTextUnchanged(text: String) {
        #expect(ProcessArguments.string(of: Array(text.utf8)) == text)
    }
}
