// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "transferkit", path: "../.."),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    ],
    targets: [
        .executableTarget(name: "benchmarks", swiftSettings: settings),
        .executableTarget(
            name: "queue-benchmark",
            dependencies: [
                .product(name: "TransferKit", package: "transferkit"), .product(name: "TransferCore", package: "transferkit"),
                .product(name: "Logging", package: "swift-log"), .product(name: "SystemPackage", package: "swift-system"),
            ], swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
