// swift-tools-version: 6.0
// The rooms of Larder, and who may import whom: Protocol/design/rooms.md.
import PackageDescription

let swift: [SwiftSetting] = [.swiftLanguageMode(.v6)]

let package = Package(
    name: "larder",
    products: [
        .executable(name: "larder", targets: ["larder"]),
        .library(name: "LarderStore", targets: ["LarderStore"]),
        .library(name: "LarderClient", targets: ["LarderClient"]),
    ],
    targets: [
        .systemLibrary(name: "CLibuv", pkgConfig: "libuv", providers: [.apt(["libuv1-dev"])]),
        .target(name: "CLarder"),
        .target(name: "LarderFormat", dependencies: ["CLarder"], swiftSettings: swift),
        .target(name: "LarderWire", dependencies: ["LarderFormat"], swiftSettings: swift),
        .target(name: "LarderStore", dependencies: ["LarderFormat", "CLarder"], swiftSettings: swift),
        .target(name: "LarderLoop", dependencies: ["CLibuv", "CLarder"], swiftSettings: swift),
        .target(
            name: "LarderHost", dependencies: ["LarderWire", "LarderStore", "LarderLoop", "CLarder"],
            swiftSettings: swift),
        .target(name: "LarderClient", dependencies: ["LarderWire", "CLarder"], swiftSettings: swift),
        .executableTarget(
            name: "larder", dependencies: ["LarderHost", "LarderClient", "CLarder"], exclude: ["Demo/Sample"],
            swiftSettings: swift),
        .executableTarget(
            name: "larder-bench", dependencies: ["LarderHost", "LarderClient", "CLarder"], swiftSettings: swift),
        .testTarget(name: "LarderFormatTests", dependencies: ["LarderFormat", "CLarder"], swiftSettings: swift),
        .testTarget(name: "LarderWireTests", dependencies: ["LarderWire"], swiftSettings: swift),
        .testTarget(name: "LarderStoreTests", dependencies: ["LarderStore"], swiftSettings: swift),
        .testTarget(name: "LarderLoopTests", dependencies: ["LarderLoop"], swiftSettings: swift),
        .testTarget(
            name: "SimulatorTests", dependencies: ["LarderHost", "LarderWire", "LarderStore", "LarderLoop"],
            swiftSettings: swift),
        .testTarget(name: "LarderHostTests", dependencies: ["LarderHost", "LarderClient"], swiftSettings: swift),
        .testTarget(name: "LarderClientTests", dependencies: ["LarderClient"], swiftSettings: swift),
        .testTarget(name: "BenchTests", dependencies: ["larder-bench"], swiftSettings: swift),
        .testTarget(name: "CommandTests", dependencies: ["larder"], exclude: ["Cases"], swiftSettings: swift),
    ]
)
