// swift-tools-version: 6.2
import PackageDescription

// Warnings are errors in this project's own builds only: in a package that depends on this one,
// a newer compiler's warning must not break the build.
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
let flyingFox = Target.Dependency.product(name: "FlyingFox", package: "FlyingFox")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let system = Target.Dependency.product(name: "SystemPackage", package: "swift-system")

let package = Package(
    name: "transferkit",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "TransferCore", targets: ["TransferCore"]),
        .library(name: "TransportSupport", targets: ["TransportSupport"]),
        .library(name: "CurlEngine", targets: ["CurlEngine"]),
        .library(name: "TransportTUS", targets: ["TransportTUS"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/swhitty/FlyingFox", from: "0.27.1"),
    ],
    targets: [
        .target(name: "TransferCore", dependencies: [logging, system], swiftSettings: settings),
        .target(name: "TransportSupport", dependencies: ["TransferCore", system], swiftSettings: settings),
        .systemLibrary(
            name: "CCurl", path: "Plugins/HTTP/CCurl", pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
        .target(
            name: "CurlEngine", dependencies: ["CCurl", "TransportSupport", "TransferCore", system],
            path: "Plugins/HTTP/CurlEngine", swiftSettings: settings),
        .target(
            name: "TransportTUS", dependencies: ["CurlEngine", "TransportSupport", "TransferCore", logging, system],
            path: "Plugins/TUS/TransportTUS", swiftSettings: settings),
        .target(
            name: "ScriptedHTTP", dependencies: ["TransferCore", "TransportSupport", system], path: "Tests/ScriptedHTTP",
            swiftSettings: settings),
        .testTarget(
            name: "CurlEngineTests", dependencies: ["CurlEngine", "ScriptedHTTP", "TransportSupport", "TransferCore", system],
            swiftSettings: settings),
        .testTarget(
            name: "TransportTUSTests",
            dependencies: ["TransportTUS", "CurlEngine", "ScriptedHTTP", "TransportSupport", "TransferCore", logging, system],
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
