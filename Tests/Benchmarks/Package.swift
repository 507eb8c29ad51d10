// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "benchmarks",
    platforms: [.macOS(.v15)],
    targets: [
        .executableTarget(
            name: "benchmarks",
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("MemberImportVisibility"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
