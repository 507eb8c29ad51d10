import TransferKit
import TransferOutput

actor JSONProgress: ProgressDisplay {
    private var order: SessionIndices
    private let output: OutputWriter

    init(order: SessionIndices, output: OutputWriter) {
        self.order = order
        self.output = output
    }

    func show(_ event: QueueEvent) async {
        let index = order.index(at: event)
        await output.write(JSONValue(event, index: index))
    }

    func finish(_ summary: RunSummary) {}
}
