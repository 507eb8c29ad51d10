// The script of the page. Without the script, each action is a plain form. The server renders all rows and panels; the script replaces them after events.
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const list = $("#list");
  if (!list) return;
  const form = $("#sessions"), dialog = $("#dialog"), toast = $("#toast"), notice = $("#notice");
  const canWrite = document.body.dataset.access === "write";
  const query = new URLSearchParams(location.search), firstRow = Number(query.get("from")) || 0;
  for (const name of ["from", "limit", "session", "items"]) query.delete(name);
  const isWindowed = Number(list.dataset.total) >= 0;
  const page = isWindowed ? 120 : 500;
  const selected = new Set(), markup = new WeakMap(), undoable = [], waiting = [];
  let start = isWindowed ? 0 : firstRow, count = page, total = Number(list.dataset.total), order = "0", lastEvent = document.body.dataset.revision;
  let toastTimer, isFollowing = false, moved = Promise.resolve(); // `moved` resolves when the page shows the last move.
  let current = null, anchor = null, drag = null, timer = null, due = 0, isLoading = false, isStale = false, opened = null, goal = null;
  document.documentElement.classList.add("scripted");

  // Messages.

  function showMessage(text, action, label) {
    toast.textContent = text;
    if (action) toast.append(Object.assign(document.createElement("button"), { type: "button", textContent: label, onclick: action }));
    clearTimeout(toastTimer);
    toast.hidden = false;
    toastTimer = setTimeout(() => { toast.hidden = true; }, action ? 12000 : 6000);
  }

  // The message that the server rendered stays until the user changes something.
  let rendered = notice.hidden ? "" : notice.textContent;
  function warn(text) { [notice.textContent, notice.hidden] = [text || rendered, !(text || rendered)]; }

  // Reading. Only one request runs at a time. A change during a request causes another request.

  function refreshSoon(delay) {
    const time = Date.now() + delay;
    if (timer && due <= time) return;
    clearTimeout(timer);
    due = time;
    timer = setTimeout(() => { timer = null; refresh(); }, delay);
  }

  // Resolves when the page shows a state that was read after this call.
  function shown() { refreshSoon(0); return new Promise((resolve) => waiting.push(resolve)); }

  async function refresh() {
    if (isLoading || document.hidden || drag && !drag.follows) { isStale = true; return; }
    [isLoading, isStale] = [true, false];
    const served = waiting.splice(0);
    try {
      const parameters = new URLSearchParams(query);
      parameters.set("from", start);
      parameters.set("limit", count);
      if (opened) parameters.set("session", opened);
      const response = await fetch("/parts?" + parameters, { headers: { Accept: "application/json" } });
      const parts = await response.json();
      if (response.ok) {
        warn("");
        if (drag && !drag.follows) isStale = true; else { if (drag) drag.follows = false; apply(parts); for (const resolve of served.splice(0)) resolve(); }
      } else if (response.status === 404 && opened) { closeDetail(); isStale = true; } else {
        warn(parts.detail);
        if (response.status === 401) location.reload();
        refreshSoon(2000);
      }
    } catch { warn("The server is not responding. Trying again."); refreshSoon(2000); }
    isLoading = false;
    waiting.unshift(...served);
    if (isStale) refreshSoon(100);
  }

  function replace(id, html) {
    const element = document.getElementById(id);
    if (markup.get(element) === html || element.contains(document.activeElement) && document.activeElement !== element) return;
    markup.set(element, html);
    element.innerHTML = html;
  }

  function apply(parts) {
    replace("status", parts.status);
    replace("accounts", parts.accounts);
    replace("log", parts.log);
    replace("pager", parts.pager);
    total = parts.total;
    const template = document.createElement("template"), top = list.scrollTop;
    template.innerHTML = parts.rows;
    const fresh = $("ul", template.content), rows = $("ul", list);
    if (!fresh) {
      if (start > 0 && isWindowed) { start = 0; isStale = true; return; }
      if (markup.get(list) !== parts.rows) list.innerHTML = parts.rows;
      markup.set(list, parts.rows);
    } else {
      markup.delete(list);
      if (rows) merge(rows, fresh); else list.replaceChildren(fresh);
    }
    if (opened && parts.detail && !(dialog.contains(document.activeElement) && document.activeElement.matches("input"))) showDetail(parts.detail);
    updateRows();
    if (list.scrollTop !== top) list.scrollTop = top; // While the rows were replaced, the list was shorter.
    follow(); // The user may have scrolled since the request.
  }

  // Keeps the elements of unchanged rows, so that the focus, a text selection and a screen reader are not disturbed.
  function merge(rows, fresh) {
    const old = new Map([...rows.children].map((row) => [row.dataset.id, row]));
    const active = document.activeElement, focused = active && active.closest && active.closest(".row");
    const focus = focused && { id: focused.dataset.id, selector: active.matches("input") ? "input" : active.matches("a") ? "a" : null };
    const next = [...fresh.children].map((row) => {
      const known = old.get(row.dataset.id), html = row.outerHTML;
      if (known && markup.get(known) === html) return known;
      markup.set(row, html);
      return row;
    });
    rows.dataset.order = fresh.dataset.order;
    rows.replaceChildren(...next);
    if (focus) {
      const row = next.find((each) => each.dataset.id === focus.id);
      if (row) row.tabIndex = 0;
      if (row && !row.contains(document.activeElement)) (focus.selector ? $(focus.selector, row) : row).focus({ preventScroll: true });
    }
  }

  const rows = () => [...list.querySelectorAll(".row")];
  const find = (id) => rows().find((row) => row.dataset.id === id);
  const height = () => { const row = $(".row", list); return row ? row.getBoundingClientRect().height : 72; };

  function updateRows() {
    const ul = $("ul", list), all = rows();
    if (ul) {
      order = ul.dataset.order;
      ul.setAttribute("role", "list");
      if (isWindowed && all.length) {
        start = Number(ul.firstElementChild.dataset.index);
        ul.style.paddingTop = start * height() + "px";
        ul.style.paddingBottom = Math.max(0, total - start - all.length) * height() + "px";
      }
    }
    const ids = new Set(all.map((row) => row.dataset.id));
    if (!isWindowed || all.length === total) for (const id of selected) if (!ids.has(id)) selected.delete(id);
    const wanted = all.find((row) => Number(row.dataset.index) === goal);
    if (wanted) { current = wanted.dataset.id; goal = null; }
    if (!all.some((row) => row.dataset.id === current)) current = all.length && (!current || !isWindowed) ? all[0].dataset.id : current;
    all.forEach((row, offset) => {
      const isSelected = selected.has(row.dataset.id);
      row.tabIndex = row.dataset.id === current || !ids.has(current) && offset === 0 ? 0 : -1;
      row.setAttribute("aria-setsize", isWindowed ? total : all.length);
      row.setAttribute("aria-posinset", isWindowed ? start + offset + 1 : offset + 1);
      row.classList.toggle("selected", isSelected);
      row.classList.toggle("dragged", Boolean(drag && drag.ids.includes(row.dataset.id)));
      $("input", row).checked = isSelected;
    });
    if (wanted) { wanted.tabIndex = 0; wanted.focus(); }
    const label = $("#count");
    if (label) {
      const isPart = isWindowed && total > all.length;
      label.textContent = selected.size ? selected.size + (isPart ? " of " + total : "") + " selected" : isPart ? all.length + " listed" : "All";
      $("#all").checked = selected.size > 0 && !isPart && all.every((row) => selected.has(row.dataset.id));
      $("#all").indeterminate = selected.size > 0 && !$("#all").checked;
    }
  }

  // Only the rows near the visible part of the list exist as elements. Scrolling loads other rows.
  function follow() {
    if (!isWindowed || !$("ul", list)) return;
    const first = Math.floor(list.scrollTop / height()), visible = Math.ceil(list.clientHeight / height()), end = start + rows().length;
    if (first >= start && Math.min(total, first + visible) <= end && (start === 0 || first - start > 10 || first < 10)) return;
    const wanted = Math.max(0, first - Math.floor((page - visible) / 2));
    if (wanted !== start || end < Math.min(total, first + visible)) { start = wanted; if (drag) drag.follows = true; refreshSoon(0); }
  }
  const followSoon = () => { if (!isFollowing) requestAnimationFrame(() => { isFollowing = false; follow(); }); isFollowing = true; };
  list.addEventListener("scroll", followSoon, { passive: true });

  // Changing.

  async function send(url, body, headers) {
    rendered = "";
    const response = await fetch(url, { method: "POST", body, headers: { Accept: "application/json", ...headers } });
    const result = response.status === 204 ? {} : await response.json();
    if (response.ok) return result;
    const message = result.code === "staleOrder" ? "Nothing was moved, because the order had changed. Try again." : result.detail;
    throw Object.assign(new Error(message || "The server rejected the change."), { code: result.code });
  }

  const past = { now: "run", next: "next to start", pause: "paused", resume: "resumed", hold: "held", release: "released", yield: "yielded",
    retry: "retried", cancel: "cancelled", remove: "removed", set: "changed", rate: "limited", move: "moved", enqueue: "enqueued" };

  async function act(fields, verb) {
    if (fields.getAll("id").length > 1000) return showMessage("Select at most 1,000 sessions.");
    if (verb === "remove" && !await confirmRemoval(fields.getAll("id").length)) return false;
    let isDone = false;
    try {
      const result = await send("/forms", fields);
      if (result.changed) {
        const amount = result.changed.length === 1 ? "1 session" : result.changed.length + " sessions";
        for (const each of result.refused) if (each.code === "noSuchSession") selected.delete(each.id);
        showMessage([amount + " " + (past[verb] || "changed") + ".", ...result.refused.map((each) => each.detail)].join(" "));
      } else if (verb === "add") showMessage("The session was added.");
      else if (verb === "limits") showMessage("The limits were saved.");
      else if (result.mode) showMessage("The queue is " + result.mode + ".");
      else showMessage("Done.");
      if (verb === "remove") closeDetail();
      if (verb === "remove" || verb === "enqueue") selected.clear();
      isDone = true;
    } catch (error) { showMessage(error.message); }
    refreshSoon(0);
    return isDone;
  }

  function operate(verb, ids) {
    act(new URLSearchParams([["form", form.elements.form.value], ["do", verb], ...[...ids].map((id) => ["id", id])]), verb);
  }

  function confirmRemoval(number) {
    return new Promise((resolve) => {
      if (!number) return resolve(true);
      const box = document.createElement("dialog");
      box.setAttribute("aria-labelledby", "ask-title");
      box.innerHTML = '<h2 id="ask-title"></h2><p>Source files and completed files at the destination stay.</p><form method="dialog" class="toolbar"><button value="yes" class="danger">Remove</button><button value="no" autofocus>Keep</button></form>';
      $("h2", box).textContent = "Remove " + (number === 1 ? "1 session" : number + " sessions") + "?";
      box.addEventListener("close", () => { box.remove(); resolve(box.returnValue === "yes"); });
      document.body.append(box);
      box.showModal();
    });
  }

  document.addEventListener("submit", (event) => {
    if (!event.target.matches(".live")) return;
    event.preventDefault();
    const fields = new URLSearchParams(new FormData(event.target, event.submitter));
    const verb = fields.get("do");
    if (event.target === form) {
      fields.delete("id");
      for (const id of selected) fields.append("id", id);
    }
    if (event.target === form && verb === "move" && selected.size && fields.get("at")) return move([...selected], { at: Number(fields.get("at")) }, order);
    act(fields, verb).then((isDone) => {
      if (isDone && verb === "add") event.target.reset();
      if (isDone && verb === "limits") for (const each of event.target.elements) if (each.name.endsWith("Before")) each.value = event.target.elements[each.name.slice(0, -6)].value;
    });
  });

  // Each move sends the revision of the order that the user saw. If the order has changed since, the server moves nothing. Otherwise, it returns the
  // moves that undo this one.
  const change = (path, body, expected) => send("/api/v1/sessions/" + path, JSON.stringify(body), { "Content-Type": "application/json", "If-Match": `"order-${expected}"` });

  async function move(ids, destination, expected) {
    const row = find(ids[0]);
    try {
      const { changed, refused, undo: steps } = await change("actions", { operation: "move", ids, ...destination }, expected);
      undoable.push(steps);
      await (moved = shown());
      const text = "Moved " + (changed.length > 1 ? changed.length + " sessions." : row ? $(".name", row).textContent + "." : "1 session.");
      showMessage([text, ...refused.map((each) => each.detail)].join(" "), undo, "Undo");
    } catch (error) { showMessage(error.message); refreshSoon(0); }
  }

  // Moves the sessions back to their former neighbours. If the order has changed, or the server does not respond, the remaining steps stay undoable.
  const undo = () => { moved = moved.then(revert); };
  async function revert() {
    const steps = undoable.pop(), reasons = [];
    if (!steps) return showMessage("There is no move to undo.");
    for (let expected = order; steps.length; steps.shift()) {
      const { id, ...destination } = steps[0];
      try { expected = (await change(id + "/move", destination, expected)).orderRevision; } catch (error) {
        if (!error.code || error.code === "staleOrder") { undoable.push(steps); refreshSoon(0); return showMessage(error.message, undo, "Undo"); }
        reasons.push(error.message);
      }
    }
    await shown();
    showMessage(reasons.length ? "The move was not undone completely. " + reasons[0] : "The move was undone.");
  }

  // Selection.

  function select(id, isSelected, isRange) {
    const all = rows(), from = all.findIndex((row) => row.dataset.id === anchor), to = all.findIndex((row) => row.dataset.id === id);
    if (isRange && anchor && from < 0) { updateRows(); return showMessage("The start of the range is too far away. Select the range in parts."); }
    const range = isRange && from >= 0 ? all.slice(Math.min(from, to), Math.max(from, to) + 1) : [find(id)];
    for (const row of range.filter(Boolean)) if (isSelected) selected.add(row.dataset.id); else selected.delete(row.dataset.id);
    anchor = id;
    updateRows();
  }

  list.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (!row) return;
    current = row.dataset.id;
    if (event.target.matches("input")) select(row.dataset.id, event.target.checked, event.shiftKey);
    else if (event.target.closest("a.name")) {
      if (event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      openDetail(row.dataset.id);
    } else if (!String(getSelection())) {
      select(row.dataset.id, !selected.has(row.dataset.id), event.shiftKey);
      row.focus();
    }
  });

  const all = $("#all");
  if (all) all.addEventListener("change", () => {
    if (all.checked) for (const row of rows()) selected.add(row.dataset.id); else selected.clear();
    updateRows();
  });

  // Details.

  function showDetail(html) {
    if (markup.get(dialog) === html) return;
    markup.set(dialog, html);
    const controls = () => [...dialog.querySelectorAll("a, button, input")], focus = controls().indexOf(document.activeElement), top = dialog.scrollTop;
    dialog.innerHTML = html;
    dialog.scrollTop = top;
    if (controls()[focus]) controls()[focus].focus();
  }

  async function openDetail(id, items) {
    opened = id;
    const response = await fetch("/parts?limit=1&session=" + id + (items ? "&items=" + items : ""));
    const parts = await response.json();
    if (!response.ok) { opened = null; return showMessage(parts.detail); }
    showDetail(parts.detail);
    if (!dialog.open) dialog.showModal();
    if (items) opened = null;
  }

  function closeDetail() { opened = null; if (dialog.open) dialog.close(); }

  dialog.addEventListener("close", () => { opened = null; const row = find(current); if (row) row.focus(); });
  dialog.addEventListener("click", (event) => {
    const link = event.target.closest("a"), target = link && new URLSearchParams(link.search);
    if (event.target === dialog || link && link.closest(".close")) { event.preventDefault(); closeDetail(); }
    else if (link && link.search.includes("items=")) { event.preventDefault(); openDetail(target.get("session"), target.get("items")); }
  });
  $("#help-button").addEventListener("click", () => { showDetail($("#keys").innerHTML); dialog.showModal(); });

  // Keys.

  const verbs = { n: "now", x: "next", p: "pause", r: "resume", h: "hold", l: "release", y: "yield", t: "retry", c: "cancel", Delete: "remove" };
  list.addEventListener("keydown", async (event) => {
    const row = event.target.closest(".row");
    if (!row || event.target.matches("a") && event.key === "Enter" || event.target.matches("input") && event.key === " ") return;
    const around = rows(), at = around.indexOf(row), id = row.dataset.id;
    const step = { ArrowUp: -1, ArrowDown: 1, Home: -Infinity, End: Infinity }[event.key];
    if (step && event.altKey) {
      event.preventDefault();
      const other = around[at + step];
      const destination = step === -Infinity ? { to: "front" } : step === Infinity ? { to: "end" }
        : other && (step < 0 ? { before: other.dataset.id } : { after: other.dataset.id });
      if (canWrite && destination) { current = id; await move([id], destination, order); }
    } else if (step) {
      event.preventDefault();
      if (Math.abs(step) === Infinity && isWindowed) {
        goal = step > 0 ? total - 1 : 0;
        list.scrollTop = step > 0 ? list.scrollHeight : 0;
        follow();
        return updateRows();
      }
      const other = around[Math.min(around.length - 1, Math.max(0, at + step))];
      current = other.dataset.id;
      if (event.shiftKey) { if (!anchor) anchor = id; const kept = anchor; select(current, true, true); anchor = kept; } else updateRows();
      other.focus();
      other.scrollIntoView({ block: "nearest" });
    } else if (event.key === " ") { event.preventDefault(); select(id, !selected.has(id), event.shiftKey); }
    else if (event.key === "Enter") openDetail(id);
    else if ((event.ctrlKey || event.metaKey) && event.key === "a") {
      event.preventDefault();
      for (const each of around) selected.add(each.dataset.id);
      updateRows();
    } else if ((event.ctrlKey || event.metaKey) && event.key === "z") { event.preventDefault(); undo(); }
    else if (canWrite && verbs[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) operate(verbs[event.key], selected.has(id) ? selected : [id]);
  });

  // Dragging, with a mouse, a pen or a finger.

  list.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest(".handle"), row = event.target.closest(".row");
    if (!handle || !canWrite || event.button) return;
    event.preventDefault();
    const ids = selected.has(row.dataset.id) ? [...selected] : [row.dataset.id];
    drag = { ids, order, line: document.createElement("div"), destination: null, y: event.clientY, follows: false };
    drag.line.className = "drop";
    list.append(drag.line);
    list.setPointerCapture(event.pointerId);
    updateRows();
    requestAnimationFrame(hover);
  });
  list.addEventListener("pointermove", (event) => { if (drag) { drag.y = event.clientY; aim(); } });
  function hover() { if (drag) { aim(); requestAnimationFrame(hover); } }
  // Shows the new position of the dragged sessions, and scrolls while the pointer is near an edge.
  function aim() {
    const bounds = list.getBoundingClientRect(), y = drag.y;
    if (y < bounds.top + 40) list.scrollTop -= 12;
    if (y > bounds.bottom - 40) list.scrollTop += 12;
    const target = rows().find((row) => { const box = row.getBoundingClientRect(); return y >= box.top && y < box.bottom; });
    drag.destination = null;
    drag.line.hidden = !target || drag.ids.includes(target.dataset.id);
    if (drag.line.hidden) return;
    const box = target.getBoundingClientRect(), isBefore = y < box.top + box.height / 2;
    drag.destination = isBefore ? { before: target.dataset.id } : { after: target.dataset.id };
    drag.line.style.top = (isBefore ? box.top : box.bottom) - bounds.top + list.scrollTop + "px";
  }
  function drop(isDone) {
    if (!drag) return;
    const { ids, destination, order: seen, line } = drag;
    drag = null;
    line.remove();
    updateRows();
    if (isDone && destination) move(ids, destination, seen); else if (isStale) refreshSoon(0);
  }
  for (const name of ["pointerup", "pointercancel"]) list.addEventListener(name, () => drop(name === "pointerup"));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") drop(false); });

  // Events. The browser reconnects with the ID of the last event, so no event is missed.

  let source;
  function listen() {
    if (document.hidden) return;
    source = new EventSource("/api/v1/events?since=" + lastEvent);
    source.onopen = () => refreshSoon(0);
    source.onmessage = (message) => {
      lastEvent = message.lastEventId || lastEvent;
      const event = JSON.parse(message.data);
      if (event.event !== "progress") return refreshSoon(event.event === "totalProgress" ? 1000 : 120);
      const row = find(event.id), done = Math.max(event.bytesDone, event.bytesSent);
      if (row && event.bytesTotal > 0) $("progress", row).value = Math.floor(1000 * Math.min(0.99, done / event.bytesTotal));
      refreshSoon(1000);
    };
    source.addEventListener("owner", ({ data }) => { warn(JSON.parse(data).isReachable ? "" : "The queue is not responding. Reload the page to see why."); refreshSoon(0); });
    source.onerror = () => {
      warn("The connection was lost. Reconnecting.");
      if (source.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
    };
  }

  // The graph of rates.

  let samples = [], lastSample = 0;
  function size(bytes) {
    let unit = 0;
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    while (bytes >= 1000 && unit < units.length - 1) { bytes /= 1024; unit += 1; }
    return (bytes >= 100 || unit === 0 ? Math.round(bytes) : bytes.toPrecision(3)) + " " + units[unit] + "/s";
  }

  async function plot() {
    if (document.hidden) return;
    try {
      const response = await fetch("/api/v1/rates?after=" + lastSample);
      if (!response.ok) return;
      const found = await response.json();
      samples = [...(found.last < lastSample ? [] : samples), ...found.samples].slice(-300);
      lastSample = found.last;
      draw();
    } catch { /* The event stream reports a lost connection. */ }
  }

  function draw() {
    // One line for each of the busiest accounts, and one for all others together.
    const sums = new Map(), rate = (sample, name) => sample.accounts[name] || 0;
    for (const sample of samples) for (const [name, value] of Object.entries(sample.accounts)) sums.set(name, (sums.get(name) || 0) + value);
    const ranked = [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a)), shown = ranked.length > 6 ? ranked.slice(0, 5) : ranked;
    const lines = shown.sort().map((name) => [name, (sample) => rate(sample, name)]);
    if (ranked.length > 6) lines.push([ranked.length - 5 + " other accounts", (sample) => sample.rate - shown.reduce((sum, name) => sum + rate(sample, name), 0)]);
    const top = Math.max(1, ...samples.map((sample) => sample.rate)) * 1.1, now = samples.length ? samples[samples.length - 1].rate : 0;
    const x = (index) => 600 - (samples.length - 1 - index) * 2, y = (rate) => 140 - 136 * rate / top;
    const line = (value) => samples.map((sample, index) => `${x(index)},${y(value(sample)).toFixed(1)}`).join(" ");
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const add = (name, attributes) => {
      const element = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", name));
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    };
    for (const [key, value] of [["viewBox", "0 0 600 141"], ["preserveAspectRatio", "none"], ["role", "img"]]) svg.setAttribute(key, value);
    svg.setAttribute("aria-label", `Rate now ${size(now)}; highest ${size(top / 1.1)} in the last 10 minutes`);
    for (const part of [0.25, 0.5, 0.75]) add("line", { class: "grid", x1: 0, x2: 600, y1: 140 - 136 * part, y2: 140 - 136 * part });
    if (samples.length) add("polygon", { class: "area", points: `${x(0)},141 ${line((sample) => sample.rate)} 600,141` });
    if (lines.length > 1) lines.forEach(([, value], index) => add("polyline", { class: "account a" + index, points: line(value) }));
    add("polyline", { class: "total", points: line((sample) => sample.rate) });
    const legend = Object.assign(document.createElement("p"), { className: "legend" });
    const entries = lines.length > 1 ? lines.map(([name, value], index) => ["a" + index, name, value(samples[samples.length - 1])]) : [];
    for (const [className, name, rate] of [["total", "Total", now], ...entries])
      legend.append(Object.assign(document.createElement("span"), { className, textContent: name + " " + size(rate) }));
    const scale = Object.assign(document.createElement("p"), { className: "scale", textContent: size(top / 1.1 > 1 ? top / 1.1 : 0) });
    $("#graph").replaceChildren(scale, svg, legend);
  }

  // A browser allows only a few connections to a server, so a hidden page closes its event stream. Once visible, the page gets the missed events.
  document.addEventListener("visibilitychange", () => { if (source) source.close(); listen(); if (!document.hidden) { refreshSoon(0); plot(); } });
  addEventListener("resize", () => { updateRows(); follow(); });
  for (const row of rows()) markup.set(row, row.outerHTML);
  if (isWindowed && Number(($("ul", list) || list).dataset.start) > 0) history.replaceState(null, "", "/");
  const section = $("#detail");
  if (section) { const id = new URLSearchParams(location.search).get("session"); section.remove(); if (id) openDetail(id); }
  updateRows();
  if (start > 0 && isWindowed) list.scrollTop = start * height();
  refreshSoon(0);
  listen();
  plot();
  setInterval(plot, 2000);
})();
