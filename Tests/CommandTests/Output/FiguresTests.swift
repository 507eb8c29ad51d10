import Testing
import TransferOutput

struct FiguresTests {
    @Test(arguments: [
        (0, "0 B"), (999, "999 B"), (1_000, "0.98 KiB"), (1_024, "1.00 KiB"), (10_234, "9.99 KiB"), (10_236, "10.0 KiB"),
        (102_348, "99.9 KiB"), (102_370, "100 KiB"), (1_023_487, "999 KiB"), (1_023_700, "0.98 MiB"), (-10_236, "-10.0 KiB"),
        (Int64.max, "8.00 EiB"), (Int64.min, "-8.00 EiB"),
    ])
    func sizesHaveThreeDigits(bytes: Int64, text: String) {
        #expect(Figures.size(bytes) == text)
    }
}
