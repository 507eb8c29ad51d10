import Testing

/// A process owns the queue, but the user has stopped the queue.
@Suite(.serialized) struct StoppedQueueTests {
    @Test(arguments: [("stop", "stopped"), ("drain", "stopped")]) func explainsHowToStart(command: String, mode: String) async throws {
        try await LoopbackStudio.withAgent { studio in
            let program = studio.program
            try await program.succeed("agent", "start")
            try program.folder.file("a", size: 10)
            try await program.succeed("queue", command)
            let advice = "The queue is \(mode), so no session starts. To start it: transferq queue start\n"
            let added = try await program.succeed("upload", "studio", "a")
            #expect(added.diagnostics == advice, "\(added.testDescription)")
            #expect(try await program.succeed("download", "studio", "x", "--to", ".").diagnostics == advice)
            let id = added.lines[0]
            #expect(try await program.succeed("why", id).output == advice)
            try await program.succeed("cancel", id)
            #expect(try await program.succeed("retry", id).diagnostics == advice)
            for words in [["agent", "status"], ["agent", "start"]] {
                let agent = try await program.succeed(words).output
                #expect(agent.hasPrefix("The agent (process ") && agent.hasSuffix(" \(advice)"), "\(words): \(agent)")
            }
            #expect(try await program.run("doctor").output.contains(advice))
            for words in [["agent", "status"], ["agent", "start"], ["doctor"]] {
                let objects = try await program.run(words + ["--json"]).objects()
                #expect(objects.contains { $0["mode"] as? String == mode }, "\(words): \(objects)")
            }
            try await program.succeed("queue", "start")
            try await studio.arrival(of: id)
            let agent = try await program.succeed("agent", "status").output
            #expect(!agent.contains("queue start"), "\(agent)")
            try await program.succeed("agent", "stop")
        }
    }
}
