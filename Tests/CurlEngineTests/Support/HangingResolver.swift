import Foundation
import Locking
import ProcessFixture
import TransferCore

#if canImport(Glibc)
    import Glibc
#endif

/// A library that replaces getaddrinfo(3), which libcurl calls on a separate thread for each name look-up. The library must be loaded
/// before the program starts (ld.so(8), LD_PRELOAD), so the tests that use it run in a separate process.
///
/// Look-ups of names that end in `.hangs.invalid` never return. Look-ups of names that end in `.missing.invalid` find no address.
enum HangingResolver {
    private static let program = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <netdb.h>
        #include <string.h>
        #include <unistd.h>

        static void (*on_lookup)(const char *name);
        void transferkit_watch_lookups(void (*callback)(const char *name)) { on_lookup = callback; }

        static int ends_in(const char *name, const char *end) {
            size_t length = strlen(name), end_length = strlen(end);
            return length >= end_length && strcmp(name + length - end_length, end) == 0;
        }

        int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
            if (node != NULL && ends_in(node, ".missing.invalid")) return EAI_NONAME;
            if (node != NULL && ends_in(node, ".hangs.invalid")) {
                if (on_lookup != NULL) on_lookup(node);
                for (;;) pause();
            }
            int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
            return next(node, service, hints, result);
        }
        """

    private static let callbacks = Locked<[String: @Sendable () -> Void]>([:])

    private typealias Watch = @convention(c) (@convention(c) (UnsafePointer<CChar>?) -> Void) -> Void

    private static var watch: Watch? {
        unsafe dlsym(nil, "transferkit_watch_lookups").map { unsafe unsafeBitCast($0, to: Watch.self) }
    }

    static var isPresent: Bool { unsafe dlsym(nil, "transferkit_watch_lookups") != nil }

    /// Calls a function when a look-up of a hanging name has begun.
    static func onLookUp(of name: String, call body: @escaping @Sendable () -> Void) {
        callbacks.withLock { $0[name] = body }
        unsafe watch? { name in
            guard let name = unsafe name.map({ unsafe String(cString: $0) }) else { return }
            HangingResolver.callbacks.withLock { $0[name] }?()
        }
    }

    /// Runs tests of this test program in a process that has loaded the library.
    ///
    /// - Returns: The exit status and the output of the process.
    static func run(testsNamed filter: String) throws -> (status: Int32, output: String) {
        struct DoesNotCompile: Error {}
        let folder = FileManager.default.temporaryDirectory.appending(path: "transferkit-resolver-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let source = folder.appending(path: "resolver.c")
        let library = folder.appending(path: "resolver.so")
        try Data(program.utf8).write(to: source)
        guard try StartedProgram.run("cc", ["-shared", "-fPIC", "-o", library.path, source.path, "-ldl"]).status == 0 else {
            throw DoesNotCompile()
        }
        // A process that waits for a hanging look-up would never end, so `timeout` kills it after 120 s.
        let arguments = [
            "-c", "exec \"$@\" 2>&1", "sh", "timeout", "--signal=KILL", "120",
            URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().path, "--testing-library", "swift-testing", "--filter", filter,
        ]
        let (status, output) = try StartedProgram.run("/bin/sh", arguments, environment: ["LD_PRELOAD": library.path])
        return (status, String(decoding: output, as: UTF8.self))
    }
}
