// swift-tools-version: 6.2
import PackageDescription

// Warnings are errors only in this project's own builds. A newer compiler may report new warnings, which must not break the
// builds of packages that depend on this package.
let isStrict = Context.environment["TRANSFERKIT_STRICT"] != nil

let settings: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InferIsolatedConformances"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .enableUpcomingFeature("ImmutableWeakCaptures"),
        .strictMemorySafety(),
    ] + (isStrict ? [.treatAllWarnings(as: .error), .treatWarning("ExplicitSendable", as: .error)] : [])

let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let sqlite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")
let heap = Target.Dependency.product(name: "HeapModule", package: "swift-collections")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "CoreMetrics", package: "swift-metrics")
let system = Target.Dependency.product(name: "SystemPackage", package: "swift-system")
let inMemoryTracing = Target.Dependency.product(name: "InMemoryTracing", package: "swift-distributed-tracing")
let tracing = Target.Dependency.product(name: "Tracing", package: "swift-distributed-tracing")

// Only `TUSLoopback`, `TransferWeb`, their programs and some tests need these dependencies. SwiftPM does not resolve packages that only a disabled
// trait needs.
let ifLoopbackServer = TargetDependencyCondition.when(traits: ["LoopbackServer", "Web"])
let ifWeb = TargetDependencyCondition.when(traits: ["Web"])
let httpTypes = Target.Dependency.product(name: "HTTPTypes", package: "swift-http-types", condition: ifLoopbackServer)
let hummingbird = Target.Dependency.product(name: "HummingbirdCore", package: "hummingbird", condition: ifLoopbackServer)
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: ifLoopbackServer)
let nioCore = Target.Dependency.product(name: "NIOCore", package: "swift-nio", condition: ifLoopbackServer)
let nioHTTPTypes = Target.Dependency.product(name: "NIOHTTPTypes", package: "swift-nio-extras", condition: ifLoopbackServer)
let nioHTTP1 = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio", condition: ifLoopbackServer)
let nioHTTPTypesHTTP1 = Target.Dependency.product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras", condition: ifLoopbackServer)
let nioResumableUpload = Target.Dependency.product(name: "NIOResumableUpload", package: "swift-nio-extras", condition: ifLoopbackServer)
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio", condition: ifLoopbackServer)
let hummingbirdTLS = Target.Dependency.product(name: "HummingbirdTLS", package: "hummingbird", condition: ifWeb)
let nioSSL = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl", condition: ifWeb)
let unixSignals = Target.Dependency.product(name: "UnixSignals", package: "swift-service-lifecycle", condition: ifLoopbackServer)

// Whether another package depends on this package. The directory of a dependency is "/" while SwiftPM resolves versions, and
// checkouts/<repository> while SwiftPM builds.
let isDependency = Context.packageDirectory == "/" || Context.packageDirectory.split(separator: "/").dropLast().last == "checkouts"

let package = Package(
    name: "transferkit",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "TransferCore", targets: ["TransferCore"]),
        .library(name: "TransportSupport", targets: ["TransportSupport"]),
        .library(name: "TransferKit", targets: ["TransferKit"]),
        .library(name: "TransportTesting", targets: ["TransportTesting"]),
        .library(name: "TransferControl", targets: ["TransferControl"]),
        .library(name: "TransportHTTP", targets: ["TransportHTTP"]),
        .library(name: "TransportTUS", targets: ["TransportTUS"]),
        .library(name: "TransportSFTP", targets: ["TransportSFTP"]),
        .library(name: "TransferCommands", targets: ["TransferCommands"]),
        .library(name: "TUSLoopback", targets: ["TUSLoopback"]),
        .executable(name: "transferq", targets: ["transferq"]),
        .executable(name: "tus-loopback", targets: ["tus-loopback"]),
        .library(name: "TransferFleet", targets: ["TransferFleet"]),
        .executable(name: "transferq-fleet", targets: ["transferq-fleet"]),
        .library(name: "TransferWeb", targets: ["TransferWeb"]),
        .executable(name: "transferq-web", targets: ["transferq-web"]),
    ],
    traits: [
        // This package's own builds include the loopback server, the web server and the tests that need them.
        .default(enabledTraits: isDependency ? [] : ["LoopbackServer", "Web"]),
        .trait(name: "LoopbackServer", description: "TUSLoopback, a tus server for the tests of an app. It needs SwiftNIO."),
        .trait(name: "Web", description: "TransferWeb, a web page and an HTTP interface for a queue. It needs SwiftNIO."),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.7.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.34.1"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.34.0"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        // Hummingbird's default traits would add libraries that this package does not use, for example for configuration files.
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .target(name: "Locking", swiftSettings: settings),
        .target(name: "TransferCore", dependencies: ["Locking", logging, system], swiftSettings: settings),
        .target(
            name: "TransferKit", dependencies: ["Locking", "TransferCore", grdb, sqlite, heap, logging, metrics, system, tracing],
            swiftSettings: settings),

        // Transports, and their building blocks.
        .target(name: "TransportSupport", dependencies: ["Locking", "TransferCore", crypto, system], swiftSettings: settings),
        .target(
            name: "TransportTesting", dependencies: ["Locking", "TransportSupport", "TransferCore", logging, system],
            swiftSettings: settings),
        .systemLibrary(
            name: "CCurl", path: "Plugins/HTTP/CCurl", pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
        .target(
            name: "CurlEngine", dependencies: ["Locking", "CCurl", "TransportSupport", "TransferCore", metrics, system, tracing],
            path: "Plugins/HTTP/CurlEngine", swiftSettings: settings),
        .target(
            name: "HTTPSupport", dependencies: ["Locking", "CurlEngine", "TransportSupport", "TransferCore", logging, system],
            path: "Plugins/HTTP/HTTPSupport", swiftSettings: settings),
        .target(
            name: "TransportTUS",
            dependencies: [
                "Locking", "CurlEngine", "HTTPSupport", "TransportSupport", "TransferCore", logging, system,
            ],
            path: "Plugins/TUS/TransportTUS", swiftSettings: settings),
        .systemLibrary(
            name: "CSSH2", path: "Plugins/SFTP/CSSH2", pkgConfig: "libssh2", providers: [.apt(["libssh2-1-dev"]), .brew(["libssh2"])]),
        .target(
            name: "SSHEngine", dependencies: ["Locking", "CSSH2", "TransportSupport", "TransferCore", crypto, logging, metrics, system],
            path: "Plugins/SFTP/SSHEngine", swiftSettings: settings),
        .target(
            name: "TransportSFTP",
            dependencies: [
                "Locking", "CurlEngine", "HTTPSupport", "SSHEngine", "TransportSupport", "TransferCore", logging, system,
            ],
            path: "Plugins/SFTP/TransportSFTP", swiftSettings: settings),

        .target(
            name: "TransportHTTP",
            dependencies: ["Locking", "CurlEngine", "HTTPSupport", "TransportSupport", "TransferCore", logging],
            path: "Plugins/HTTP/TransportHTTP", swiftSettings: settings),

        // Programs.
        .target(
            name: "TransferControl", dependencies: ["Locking", "TransferKit", "TransferCore", logging, system], swiftSettings: settings),
        .target(name: "TransferOutput", dependencies: ["TransferKit", "TransferCore", system], swiftSettings: settings),
        .target(
            name: "TransferCommands",
            dependencies: [
                "Locking", "CurlEngine", "TransferControl", "TransferOutput", "TransferKit", "TransferCore", "TransportHTTP",
                "TransportSFTP",
                "TransportSupport",
                "TransportTUS", argumentParser, crypto, logging,
                system,
            ], swiftSettings: settings),
        .executableTarget(name: "transferq", dependencies: ["TransferCommands"], swiftSettings: settings),
        .target(
            name: "TUSLoopback",
            dependencies: [
                "Locking", "TransferCore", crypto, httpTypes, hummingbird, lifecycle, logging, nioCore, nioHTTPTypes, nioPosix, system,
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "tus-loopback", dependencies: ["TUSLoopback", argumentParser, system, unixSignals], swiftSettings: settings),
        .target(
            name: "TransferWeb",
            dependencies: [
                "Locking", "TransferControl", "TransferOutput", "TransferKit", "TransferCore", crypto, httpTypes, hummingbird,
                hummingbirdTLS,
                lifecycle, logging, metrics, nioCore, nioHTTPTypes, nioPosix, nioSSL, system,
            ],
            resources: [
                .embedInCode("openapi.json"), .embedInCode("Page/page.js"), .embedInCode("Page/page.css"), .embedInCode("Page/icon.svg"),
            ], swiftSettings: settings),
        .executableTarget(
            name: "transferq-web", dependencies: ["TransferControl", "TransferWeb", argumentParser, system, unixSignals],
            swiftSettings: settings),

        // A queue of several hosts. CPostgres has no `pkgConfig`: on a host without libpq, SwiftPM would print a warning in every build, even of
        // other targets.
        .systemLibrary(name: "CPostgres", path: "Plugins/PostgreSQL/CPostgres"),
        .target(
            name: "TransferFleet", dependencies: ["Locking", "CPostgres", "TransferKit", "TransferCore", logging, system],
            path: "Plugins/PostgreSQL/TransferFleet", swiftSettings: settings),
        .executableTarget(
            name: "transferq-fleet",
            dependencies: ["TransferFleet", "TransferCommands", "TransferKit", "TransferWeb", argumentParser, logging, system],
            path: "Plugins/PostgreSQL/transferq-fleet", swiftSettings: settings),

        // Tests.
        .target(
            name: "ProcessFixture", dependencies: ["Locking", "TransferCore", system], path: "Tests/ProcessFixture", swiftSettings: settings
        ),
        .target(
            name: "ScriptedHTTP", dependencies: ["Locking", "CurlEngine", "TransferCore", "TransportSupport", logging, system],
            path: "Tests/ScriptedHTTP",
            swiftSettings: settings),
        .target(
            name: "ScriptedSFTP", dependencies: ["Locking", "TransportSFTP", "TransferCore", logging], path: "Tests/ScriptedSFTP",
            swiftSettings: settings),
        .target(
            name: "SSHFixture", dependencies: ["Locking", "ProcessFixture", "TransferCore", "TransportSupport", logging, system],
            path: "Tests/SSHFixture",
            swiftSettings: settings),
        .testTarget(name: "TransferCoreTests", dependencies: ["TransferCore", system], swiftSettings: settings),
        .testTarget(
            name: "TransportSupportTests", dependencies: ["Locking", "TransportSupport", "TransferCore", system], swiftSettings: settings),
        .testTarget(
            name: "TransferKitTests",
            dependencies: ["Locking", "TransferKit", "TransferCore", "TransportTesting", "ProcessFixture", grdb, logging, system],
            swiftSettings: settings),
        .testTarget(
            name: "CurlEngineTests",
            dependencies: ["Locking", "CurlEngine", "ProcessFixture", "ScriptedHTTP", "TransportSupport", "TransferCore", system],
            swiftSettings: settings),
        .testTarget(
            name: "TransportHTTPTests",
            dependencies: ["Locking", "TransportHTTP", "CurlEngine", "ScriptedHTTP", "TransportSupport", "TransferCore", logging, system],
            swiftSettings: settings),
        .testTarget(
            name: "TransportTUSTests",
            dependencies: [
                "Locking", "TransportTUS", "CurlEngine", "HTTPSupport", "ScriptedHTTP", "TransportSupport", "TransferCore", crypto, logging,
                system,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "SSHEngineTests",
            dependencies: [
                "Locking", "SSHEngine", "SSHFixture", "ProcessFixture", "ScriptedHTTP", "TransportSupport", "TransferCore", crypto, logging,
                system,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "TransportSFTPTests",
            dependencies: [
                "Locking", "TransportSFTP", "ProcessFixture", "ScriptedHTTP", "ScriptedSFTP", "TransportTesting", "TransportSupport",
                "TransferCore",
                crypto, logging,
                system,
            ], swiftSettings: settings),
        .testTarget(
            name: "TransportTestingTests",
            dependencies: ["Locking", "TransportTesting", "TransportSupport", "TransferCore", logging, system],
            swiftSettings: settings),
        .testTarget(
            name: "InteropTests",
            dependencies: [
                "Locking", "TransferKit", "TransportHTTP", "TransportTUS", "TransportSFTP", "TransportTesting", "TransportSupport",
                "TransferCore",
                "TUSLoopback", "ProcessFixture", "ScriptedHTTP", "ScriptedSFTP", "SSHFixture", crypto, httpTypes, inMemoryTracing, logging,
                nioCore,
                nioHTTP1, nioHTTPTypes, nioHTTPTypesHTTP1, nioPosix, nioResumableUpload, system, tracing,
            ], exclude: ["Servers"], swiftSettings: settings),
        .testTarget(
            name: "DocumentationTests",
            dependencies: [
                "TransferKit", "TransferControl", "TransportTUS", "TransportHTTP", "TransportSFTP", "TransportSupport", "TransportTesting",
                "TransferCore", logging, system,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "TransferControlTests",
            dependencies: ["TransferControl", "TransferKit", "TransferCore", "TransportTesting", "ProcessFixture", logging, system],
            swiftSettings: settings),
        .testTarget(
            name: "CommandTests",
            dependencies: [
                "Locking", "TransferCommands", "TransferControl", "TransferKit", "TransferCore", "ProcessFixture", "SSHFixture",
                "ScriptedHTTP", "TransferOutput",
                "TransportHTTP", "TransportSFTP", "TransportSupport", "TransportTUS", "TUSLoopback", "transferq", "tus-loopback", logging,
                system,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "TransferWebTests",
            dependencies: [
                "Locking", "CurlEngine", "SSHEngine", "TransferWeb", "TransferControl", "TransferKit", "TransferCore", "TransportTesting",
                "ProcessFixture",
                "ScriptedHTTP",
                "transferq",
                "transferq-web", crypto, logging, metrics, system,
            ], exclude: ["Browser", "Prometheus"], swiftSettings: settings),
        .testTarget(
            name: "TransferFleetTests",
            dependencies: [
                "Locking", "TransferFleet", "TransferKit", "TransferCore", "TransportHTTP", "TransportSFTP", "TransportTUS", "TUSLoopback",
                "ProcessFixture",
                "SSHFixture", "ScriptedHTTP", "transferq", "transferq-fleet", "tus-loopback", crypto, grdb, logging, system,
            ], swiftSettings: settings),
        .testTarget(
            name: "TUSLoopbackTests", dependencies: ["Locking", "TUSLoopback", "TransferCore", crypto, system], swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)

// Samples are separate packages that depend on this package. When a sample is built, this package must not have a target with the same name.
// Therefore, only this project's own builds, which test the samples, include them as targets. `packageAccess: false` hides symbols with `package`
// access from a sample, as from any other package. Tests/check-samples compares these targets with the targets in the samples' packages.
if isStrict {
    let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]
    package.targets += [
        .target(
            name: "FolderTransport", dependencies: ["TransportSupport", "TransferCore", system],
            path: "Samples/CustomTransport/Sources/FolderTransport", swiftSettings: settings),
        .executableTarget(
            name: "transferq-folder", dependencies: ["FolderTransport", "TransferCommands"],
            path: "Samples/CustomTransport/Sources/transferq-folder", packageAccess: false, swiftSettings: settings),
        .testTarget(
            name: "FolderTransportTests",
            dependencies: ["FolderTransport", "transferq-folder", "TransportTesting", "TransferCore", logging, system],
            path: "Samples/CustomTransport/Tests/FolderTransportTests", swiftSettings: settings),

        .executableTarget(
            name: "BatchUploader", dependencies: ["TransferKit", "TransportTUS"], path: "Samples/BatchUploader/Sources",
            packageAccess: false, swiftSettings: strict),
        .target(
            name: "UploadList", dependencies: ["TransferKit"], path: "Samples/Reprioritizer/Sources/UploadList", packageAccess: false,
            swiftSettings: strict),
        .executableTarget(
            name: "Reprioritizer", dependencies: ["UploadList", "TransferKit", "TransportTUS"],
            path: "Samples/Reprioritizer/Sources/Reprioritizer", packageAccess: false, swiftSettings: strict),
        .testTarget(
            name: "UploadListTests", dependencies: ["UploadList", "TransferKit", "TransportTesting"],
            path: "Samples/Reprioritizer/Tests/UploadListTests", packageAccess: false, swiftSettings: strict),
        .executableTarget(
            name: "AccountRouter", dependencies: ["TransferKit", "TransportHTTP", "TransportSFTP", "TransportTUS"],
            path: "Samples/AccountRouter/Sources", packageAccess: false, swiftSettings: strict),
        .executableTarget(
            name: "LiveStream", dependencies: ["TransferKit", "TransportHTTP"], path: "Samples/LiveStream/Sources", packageAccess: false,
            swiftSettings: strict),
        .executableTarget(
            name: "FormUpload", dependencies: ["TransferKit", "TransportHTTP"], path: "Samples/FormUpload/Sources", packageAccess: false,
            swiftSettings: strict),
        .executableTarget(
            name: "AgentClient", dependencies: ["TransferControl", "TransferKit"], path: "Samples/AgentClient/Sources",
            packageAccess: false, swiftSettings: strict),
        .executableTarget(
            name: "Ingest",
            dependencies: [
                "TransferKit", "TransportTUS", .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"), logging,
            ], path: "Samples/Ingest/Sources", packageAccess: false, swiftSettings: strict),
        .testTarget(
            name: "SampleTests",
            dependencies: [
                "AccountRouter", "AgentClient", "BatchUploader", "FormUpload", "Ingest", "LiveStream", "ProcessFixture",
                "Reprioritizer", "SSHFixture", "TUSLoopback", "transferq", system,
            ], swiftSettings: settings),
    ]
}

// Builds only the test targets that TRANSFERKIT_TESTS names, separated by commas. This saves most of the build time, for example with a
// sanitizer. Tests/run and Tests/sanitize set the variable.
if let names = Context.environment["TRANSFERKIT_TESTS"]?.split(separator: ",").map(String.init) {
    package.targets.removeAll { $0.type == .test && !names.contains($0.name) }
}

// Only Tests/docs, which builds the documentation site, needs this plugin. An app that uses this package does not resolve it.
if Context.environment["TRANSFERKIT_DOCS"] != nil {
    package.dependencies.append(.package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0"))
}

// Fuzzing requires code that is compiled with libFuzzer's instrumentation. Tests/Fuzzing/run builds it in a separate folder.
if Context.environment["TRANSFERKIT_FUZZING"] != nil {
    // Only this package's modules get libFuzzer's coverage counters. libFuzzer reads all counters after each input, so counters in other packages
    // would take most of the time.
    for target in package.targets where target.type == .regular || target.type == .executable {
        target.swiftSettings = (target.swiftSettings ?? []) + [.unsafeFlags(["-sanitize=fuzzer,address"])]
    }
    package.targets += [
        .systemLibrary(name: "CFuzzer", path: "Tests/Fuzzing/CFuzzer"),
        .executableTarget(
            name: "Fuzzer",
            dependencies: [
                "CFuzzer", "CurlEngine", "HTTPSupport", "Locking", "SSHEngine", "TransferCommands", "TransferControl",
                "TransferCore", "TransferKit", "TransportHTTP", "TransportSFTP", "TransportSupport", "TransportTesting", "TransportTUS",
                grdb,
                system,
            ], path: "Tests/Fuzzing/Fuzzer", swiftSettings: settings + [.unsafeFlags(["-sanitize=fuzzer,address"])],
            // Debian's default linker can't read the debug information of code that is instrumented for libFuzzer.
            linkerSettings: [.unsafeFlags(["-use-ld=lld", "-sanitize=fuzzer,address"])]),
    ]
}
