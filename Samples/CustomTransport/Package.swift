// swift-tools-version: 6.2
import PackageDescription

// Imports are internal by default. `public import` marks the modules whose types appear in the package's own public interface.
let settings: [SwiftSetting] = [.enableUpcomingFeature("InternalImportsByDefault")]
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let system = Target.Dependency.product(name: "SystemPackage", package: "swift-system")

func product(_ name: String) -> Target.Dependency {
    .product(name: name, package: "transferkit")
}

// In your own package, use the URL of TransferKit instead of a path.
let package = Package(
    name: "transferkit-folder",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "FolderTransport", targets: ["FolderTransport"]),
        .executable(name: "transferq-folder", targets: ["transferq-folder"]),
    ],
    dependencies: [
        .package(name: "transferkit", path: "../.."),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    ],
    targets: [
        .target(
            name: "FolderTransport", dependencies: [product("TransferCore"), product("TransportSupport"), system], swiftSettings: settings),
        .executableTarget(
            name: "transferq-folder", dependencies: ["FolderTransport", product("TransferCommands")], swiftSettings: settings),
        .testTarget(
            name: "FolderTransportTests",
            dependencies: ["FolderTransport", "transferq-folder", product("TransferCore"), product("TransportTesting"), logging, system],
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
