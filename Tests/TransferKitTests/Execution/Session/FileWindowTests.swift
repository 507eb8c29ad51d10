import Testing
import TransferKit

@Suite struct FileWindowTests {
    private let large = FileWindow.smallSize + 1

    private func window(_ sizes: Int64...) -> FileWindow {
        var window = FileWindow()
        for (position, size) in sizes.enumerated() { window.insert(Int64(position), size: size) }
        return window
    }

    @Test func permitsSixSmallFiles() {
        #expect(window(1, 1, 1, 1, 1).admits(size: FileWindow.smallSize, limit: nil))
        #expect(!window(1, 1, 1, 1, 1, 1).admits(size: 1, limit: nil))
    }

    @Test(arguments: [(1, 1), (20, 20), (1_000, 64), (0, 1)])
    func transportDeterminesNumberOfSmallFiles(_ wanted: Int, _ expected: Int) {
        var window = FileWindow(smallFiles: wanted)
        var count = 0
        while window.admits(size: FileWindow.smallSize, limit: nil) {
            window.insert(Int64(count), size: FileWindow.smallSize)
            count += 1
        }
        #expect(count == expected)
    }

    @Test func sendsLargeFileAlone() {
        #expect(window().admits(size: large, limit: nil))
        #expect(!window(1).admits(size: large, limit: nil))
        #expect(!window(large).admits(size: 1, limit: nil))
    }

    @Test(arguments: [(1, 1), (2, 2), (64, 64), (1_000, 64), (0, 1)])
    func limitOfAppAppliesToFilesOfAllSizes(_ limit: Int, _ expected: Int) {
        var window = FileWindow()
        var count = 0
        while window.admits(size: large, limit: limit) {
            window.insert(Int64(count), size: large)
            count += 1
        }
        #expect(count == expected)
    }

    @Test func completedFilesMakeRoom() {
        var window = window(large)
        window.remove(0)
        #expect(window.isEmpty && window.admits(size: 1, limit: 1))
    }
}
