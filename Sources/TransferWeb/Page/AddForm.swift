import TransferKit

struct AddForm {
    let state: PageState

    /// The markup; nil if there is no account.
    var html: HTML? {
        guard !state.accounts.isEmpty else { return nil }
        return """
            <details class="panel add"\(state.status.sessions == 0 ? " open" as HTML : "")><summary><h2>Add a session</h2></summary>
            <form method="post" action="/forms" class="fields live"><input type="hidden" name="form" value="\(state.formToken)">
            <label>Account <select name="account">\(HTML.joined(state.accounts.map { "<option>\($0.account.name)</option>" as HTML }))</select></label>
            <label>Direction <select name="direction"><option value="upload">Upload to the account</option><option value="download">Download from the account</option></select></label>
            <label class="wide">Paths, one per line <textarea name="paths" rows="3" required aria-describedby="path-hint"></textarea></label>
            <p id="path-hint" class="hint wide">For an upload, absolute paths on the machine of the queue. For a download, names on the server.</p>
            <label>Destination folder <input name="to" aria-describedby="to-hint"></label>
            <label>Name <input name="name" placeholder="from the first path"></label>
            <p id="to-hint" class="hint wide">A download needs an absolute local path. For an upload, a folder on the server, or empty.</p>
            <label class="check"><input type="checkbox" name="hold" value="true"> Hold until released</label>
            <button name="do" value="add">Add</button></form></details>
            """
    }
}
