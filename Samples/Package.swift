// swift-tools-version: 6.2
import PackageDescription

func product(_ name: String) -> Target.Dependency {
    .product(name: name, package: "transferkit")
}

let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")

let package = Package(
    name: "transferkit-samples",
    platforms: [.macOS(.v15)],
    dependencies: [
        // In your own package, use the URL of TransferKit instead of a path. Leave out the trait: it is for the server `tus-loopback`, with which
        // you can try the samples.
        .package(name: "transferkit", path: "..", traits: ["LoopbackServer"]),
        // Only `Ingest` needs these packages.
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    ],
    targets: [
        .executableTarget(
            name: "BatchUploader", dependencies: [product("TransferKit"), product("TransportTUS")], path: "BatchUploader/Sources"),
        .target(name: "UploadList", dependencies: [product("TransferKit")], path: "Reprioritizer/Sources/UploadList"),
        .executableTarget(
            name: "Reprioritizer", dependencies: ["UploadList", product("TransferKit"), product("TransportTUS")],
            path: "Reprioritizer/Sources/Reprioritizer"),
        .testTarget(
            name: "UploadListTests", dependencies: ["UploadList", product("TransferKit"), product("TransportTesting")],
            path: "Reprioritizer/Tests/UploadListTests"),
        .executableTarget(
            name: "AccountRouter",
            dependencies: [product("TransferKit"), product("TransportHTTP"), product("TransportSFTP"), product("TransportTUS")],
            path: "AccountRouter/Sources"),
        .executableTarget(
            name: "LiveStream", dependencies: [product("TransferKit"), product("TransportHTTP")], path: "LiveStream/Sources"),
        .executableTarget(
            name: "FormUpload", dependencies: [product("TransferKit"), product("TransportHTTP")], path: "FormUpload/Sources"),
        .executableTarget(
            name: "AgentClient", dependencies: [product("TransferControl"), product("TransferKit")], path: "AgentClient/Sources"),
        .executableTarget(
            name: "Ingest", dependencies: [product("TransferKit"), product("TransportTUS"), hummingbird, lifecycle, logging],
            path: "Ingest/Sources"),
    ],
    swiftLanguageModes: [.v6]
)
