"""Tests of the page in a real browser: page.py TEST URL TOKEN FOLDER"""
import sys
import urllib.error

import importlib.util
import pathlib
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import Browser, Queue

test, url, token, folder = sys.argv[1:5]
origin = url.split("/login")[0]
queue = Queue(origin, token)

def require(condition, *details):
    if not condition:
        raise AssertionError(details)

def drag(browser, name, target, below=False, before_drop=lambda: None):
    """Drags a session to the upper or lower half of another session."""
    handle = browser.run("return arguments[0].querySelector('.handle')", browser.row(name))
    other = browser.row(target)
    height = other.size["height"]
    actions = ActionChains(browser.driver)
    actions.move_to_element(handle).click_and_hold()
    actions.move_to_element_with_offset(other, 0, int(height / 4) * (1 if below else -1)).perform()
    before_drop()
    ActionChains(browser.driver).release().perform()

def undo(browser, moved):
    """Presses the button that the page shows after a move."""
    browser.wait(lambda: f"Moved {moved}." in browser.find("#toast").text, "the page offers to undo the move")
    browser.find("#toast button").click()

def reorder():
    """Dragging changes the order on the server, and the change can be undone."""
    browser = Browser(url)
    before = queue.names()
    require(browser.names() == before, browser.names(), before)
    drag(browser, "session 4", "session 1")
    expected = ["session 0", "session 4", "session 1", "session 2", "session 3", "session 5"]
    browser.wait(lambda: browser.names() == expected, "the page shows the new order")
    require(queue.names() == expected, queue.names())
    undo(browser, "session 4")
    browser.wait(lambda: browser.names() == before, "the move is undone")
    require(queue.names() == before, queue.names())
    drag(browser, "session 0", "session 5", below=True)
    browser.wait(lambda: browser.names()[-1] == "session 0", "a session moves to the end")
    require(queue.names()[-1] == "session 0", queue.names())
    # Several selected sessions move together.
    for name in ["session 1", "session 3"]:
        browser.run("arguments[0].querySelector('input').click()", browser.row(name))
    drag(browser, "session 3", "session 0", below=True)
    browser.wait(lambda: browser.names()[-2:] == ["session 1", "session 3"], "both sessions move")
    require(queue.names()[-2:] == ["session 1", "session 3"], queue.names())
    undo(browser, "2 sessions")
    browser.wait(lambda: browser.names() == ["session 1", "session 2", "session 3", "session 4", "session 5", "session 0"], "the group returns")
    # An undo leaves a session in its position if another client has moved that session.
    drag(browser, "session 5", "session 1")
    browser.wait(lambda: browser.names()[0] == "session 5", "a session moves to the front")
    queue.post(f"sessions/{queue.id('session 2')}/move", to="end")
    browser.wait(lambda: browser.names()[-1] == "session 2", "the page shows the move of another client")
    undo(browser, "session 5")
    expected = ["session 1", "session 3", "session 4", "session 5", "session 0", "session 2"]
    browser.wait(lambda: browser.names() == expected, "the undo respects the move of another client")
    require(queue.names() == expected, queue.names())
    return browser

def stale():
    """A drag that began before another client changed the order moves nothing, and the page reports this."""
    browser = Browser(url)
    drag(browser, "session 4", "session 1", before_drop=lambda: queue.post(f"sessions/{queue.id('session 5')}/move", at=0))
    browser.wait(lambda: "order" in browser.find("#toast").text, "the page reports the changed order")
    expected = ["session 5", "session 0", "session 1", "session 2", "session 3", "session 4"]
    require(queue.names() == expected, queue.names())
    browser.wait(lambda: browser.names() == expected, "the page shows the order of the other client")
    # After another client changed the order, an undo moves nothing, either. During a drag, the page shows the former order.
    drag(browser, "session 4", "session 0")
    browser.wait(lambda: browser.names()[1] == "session 4" and "Moved session 4." in browser.find("#toast").text, "a session moves")
    handle = browser.run("return arguments[0].querySelector('.handle')", browser.row("session 1"))
    ActionChains(browser.driver).move_to_element(handle).click_and_hold().perform()
    queue.post(f"sessions/{queue.id('session 3')}/move", at=0)
    expected = ["session 3", "session 5", "session 4", "session 0", "session 1", "session 2"]
    browser.run("document.querySelector('#toast button').click()")
    browser.wait(lambda: "order" in browser.find("#toast").text, "the page reports the changed order")
    require(queue.names() == expected, queue.names())
    ActionChains(browser.driver).send_keys(Keys.ESCAPE).release().perform()
    browser.wait(lambda: browser.names() == expected, "the page shows the order of the other client")
    # The page now has the current order, so the undo succeeds.
    browser.find("#toast button").click()
    expected = ["session 3", "session 5", "session 0", "session 1", "session 2", "session 4"]
    browser.wait(lambda: browser.names() == expected, "the move is undone")
    require(queue.names() == expected, queue.names())
    return browser

def live():
    """Two browsers follow running sessions, and see each other's changes."""
    first, second = Browser(url), Browser(url, width=500)
    for name in ["session 0", "session 1", "session 2"]:
        queue.post(f"sessions/{queue.id(name)}/release")
    first.run("document.querySelector('button[value=start]').click()")
    for browser in [first, second]:
        browser.wait(lambda: all(browser.state(f"session {number}") == "completed" for number in range(3)), "the sessions complete")
        browser.wait(lambda: "completed" in browser.find("#log").text, "the log shows the end")
    require([session["state"] for session in queue.sessions()][:3] == ["completed"] * 3)
    second.run("arguments[0].querySelector('input').click()", second.row("session 4"))
    second.find("#sessions button[value=cancel]").click()
    first.wait(lambda: first.state("session 4") == "cancelled", "the other browser shows the change")
    second.close()
    return first

def reconnect():
    """After a lost connection, the page shows everything that happened."""
    browser = Browser(url)
    browser.wait(lambda: browser.run("return document.documentElement.classList.contains('scripted')"), "the script runs")
    browser.command("Network.enable")
    offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.command("Network.emulateNetworkConditions", offline=True, **offline)
    queue.post(f"sessions/{queue.id('session 2')}/cancel")
    queue.post(f"sessions/{queue.id('session 3')}/move", at=0)
    browser.command("Network.emulateNetworkConditions", offline=False, **offline)
    browser.wait(lambda: browser.state("session 2") == "cancelled" and browser.names()[0] == "session 3", "the page shows both changes")
    return browser

def forms():
    """Without a script, the forms of the page cancel, move, rename and remove sessions."""
    browser = Browser(url, scripts=False)
    require(not browser.find(".handle").is_displayed())
    browser.find(f"input[value='{queue.id('session 1')}']").click()
    browser.find("#sessions button[value=cancel]").click()
    browser.wait(lambda: queue.sessions()[1]["state"] == "cancelled" and browser.state("session 1") == "cancelled", "the form cancels the session")
    browser.find(f"input[value='{queue.id('session 4')}']").click()
    browser.find("#sessions input[name=at]").send_keys("0")
    browser.find("#sessions button[value=move]").click()
    browser.wait(lambda: queue.names()[0] == "session 4" and browser.names()[0] == "session 4", "the form moves the session")
    browser.find(".row a.name").click()
    name = browser.find("#detail input[name=name]")
    name.clear()
    name.send_keys("renamed")
    browser.find("#detail button[value=set]").click()
    browser.wait(lambda: queue.names()[0] == "renamed" and browser.names()[0] == "renamed", "the form renames the session")
    browser.find(f"input[value='{queue.id('session 5')}']").click()
    browser.find("#sessions button[value=remove]").click()
    browser.wait(lambda: browser.all("input[name=confirm]"), "the page asks for a confirmation")
    browser.find("button.danger").click()
    browser.wait(lambda: len(queue.names()) == 5 and len(browser.names()) == 5, "the form removes the session after a confirmation")
    return browser

def keys():
    """The keyboard moves, changes, selects and removes sessions."""
    browser = Browser(url)
    press = lambda *keys: ActionChains(browser.driver).send_keys(*keys).perform()
    browser.run("arguments[0].focus()", browser.row("session 0"))
    press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    focus = lambda: browser.run("const row = document.activeElement.closest('.row'); return row && row.querySelector('.name').textContent")
    require(focus() == "session 2", focus())
    press("c")
    browser.wait(lambda: browser.state("session 2") == "cancelled", "C cancels")
    require(focus() == "session 2", focus())
    press("t")
    browser.wait(lambda: browser.state("session 2") == "waiting", "T retries")
    press("h")
    browser.wait(lambda: browser.state("session 2") == "held", "H holds")
    ActionChains(browser.driver).key_down(Keys.ALT).send_keys(Keys.ARROW_UP).key_up(Keys.ALT).perform()
    browser.wait(lambda: queue.names()[1] == "session 2", "Alt and the arrow move")
    browser.wait(lambda: browser.names()[1] == "session 2", "the page shows the move")
    require(focus() == "session 2", focus())
    ActionChains(browser.driver).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()
    browser.wait(lambda: queue.names()[2] == "session 2", "Control and Z undo")
    browser.wait(lambda: browser.names()[2] == "session 2", "the page shows the undo")
    press(" ", Keys.ARROW_DOWN, " ")
    require(browser.find("#count").text == "2 selected", browser.find("#count").text)
    press("r")
    browser.wait(lambda: [session["state"] for session in queue.sessions()[2:4]] == ["waiting"] * 2, "R resumes the selected sessions")
    press(Keys.ENTER)
    browser.wait(lambda: browser.find("#dialog").is_displayed() and "session 3" in browser.find("#dialog").text, "Enter opens the details")
    press(Keys.ESCAPE)
    browser.wait(lambda: not browser.find("#dialog").is_displayed(), "Escape closes the details")
    require(focus() == "session 3", focus())
    press(Keys.DELETE)
    browser.wait(lambda: "Remove 2 sessions?" in browser.find("dialog[open]").text, "Delete asks for a confirmation")
    press(Keys.TAB)
    browser.find("dialog[open] button[value=yes]").send_keys(Keys.ENTER)
    browser.wait(lambda: len(queue.names()) == 4 and len(browser.names()) == 4, "the sessions are removed")
    browser.wait(lambda: "removed" in browser.find("#log").text and not browser.find("#notice").is_displayed(), "the log shows the removal")
    return browser

def more_keys():
    """The other keys, ranges, and the buttons of the queue."""
    browser = Browser(url)
    press = lambda *keys: ActionChains(browser.driver).send_keys(*keys).perform()
    def chord(key, *keys):
        actions = ActionChains(browser.driver).key_down(key)
        for each in keys:
            actions.send_keys(each)
        actions.key_up(key).perform()
    focus = lambda: browser.run("const row = document.activeElement.closest('.row'); return row && row.querySelector('.name').textContent")
    state = lambda number: queue.sessions()[number]["state"]
    browser.run("arguments[0].focus()", browser.row("session 0"))
    press(Keys.END)
    browser.wait(lambda: focus() == "session 5", "End goes to the last session")
    press(Keys.HOME)
    browser.wait(lambda: focus() == "session 0", "Home goes to the first session")
    for key, expected in [("l", "waiting"), ("p", "held"), ("n", "waiting"), ("x", "waiting"), ("y", "waiting")]:
        text = browser.find("#toast").text
        press(key)
        browser.wait(lambda: browser.find("#toast").text not in ("", text) and browser.state("session 0") == expected, f"{key} works")
        require(state(0) == expected, key, state(0))
    press(" ")
    chord(Keys.SHIFT, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    require(browser.find("#count").text == "3 selected", browser.find("#count").text)
    chord(Keys.CONTROL, "a")
    require(browser.find("#count").text == "6 selected", browser.find("#count").text)
    for name in ["session 1", "session 3"]:
        browser.run("arguments[0].focus()", browser.row(name))
        press(" ")
    require(browser.find("#count").text == "4 selected", browser.find("#count").text)
    # The mouse selects a range with the shift key, too.
    browser.run("arguments[0].querySelector('input').click()", browser.row("session 1"))
    actions = ActionChains(browser.driver).key_down(Keys.SHIFT).click(browser.run("return arguments[0].querySelector('input')", browser.row("session 3")))
    actions.key_up(Keys.SHIFT).perform()
    browser.wait(lambda: browser.find("#count").text == "6 selected", "the range is selected")
    for button, mode in [("start", "running"), ("drain", "stopped"), ("start", "running"), ("stop", "stopped")]:
        queue.post("sessions/actions", operation="hold", all=True)
        browser.find(f".menu button[value={button}]").send_keys(Keys.ENTER)
        shown = [mode, "idle"] if mode == "running" else [mode]
        browser.wait(lambda: browser.run("return document.querySelector('.mode').textContent") in shown, f"{button} works")
        browser.wait(lambda: queue.call("GET", "queue")["mode"] == mode, f"the queue is {mode}")
    # A rejected value stays in its field, with the reason.
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    field = browser.find("input[name=timetable]")
    field.send_keys("mon-xyz 5M")
    browser.find("button[value=limits]").click()
    browser.wait(lambda: "xyz" in browser.find("#toast").text, "the page explains the error")
    require(field.get_attribute("value") == "mon-xyz 5M", field.get_attribute("value"))
    field.clear()
    field.send_keys("* 5M")
    browser.find("button[value=limits]").click()
    browser.wait(lambda: "saved" in browser.find("#toast").text, "the page saves the limits")
    require(queue.call("GET", "queue")["timetable"] == "* 5M", queue.call("GET", "queue"))
    return browser

def many():
    """The page of 10,000 sessions has few elements, and can show each session."""
    browser = Browser(url)
    total = queue.call("GET", "queue")["sessions"]
    require(total == 10_000, total)
    for index in [9_999, 5_000, 0, 7_431]:
        browser.run("const list = document.querySelector('#list'); list.scrollTop = arguments[0] * document.querySelector('.row').offsetHeight", index)
        browser.wait(lambda: f"session {index}" in browser.names(), f"session {index} appears")
        require(len(browser.names()) <= 200, len(browser.names()))
        visible = browser.run("const list = document.querySelector('#list').getBoundingClientRect(), row = arguments[0].getBoundingClientRect(); return row.bottom > list.top && row.top < list.bottom", browser.row(f"session {index}"))
        require(visible, index)
    drag(browser, "session 7431", "session 7433", below=True)
    browser.wait(lambda: queue.sessions("from=7433&limit=1")[0]["name"] == "session 7431", "a session in the middle moves")
    # A group moves, and an undo restores it, even if the page does not contain the rows of all its sessions.
    top = "document.querySelector('#list').scrollTop = arguments[0] * document.querySelector('.row').offsetHeight"
    for index in [9_000, 10]:
        browser.run(top, index - 5)
        browser.wait(lambda: browser.row(f"session {index}"), f"session {index} appears")
        browser.run("arguments[0].querySelector('input').click()", browser.row(f"session {index}"))
    require(browser.find("#count").text == "2 of 10000 selected", browser.find("#count").text)
    at = lambda index: queue.sessions(f"from={index}&limit=1")[0]["name"]
    drag(browser, "session 10", "session 12")
    browser.wait(lambda: at(11) == "session 10" and at(12) == "session 9000", "both sessions are next to each other")
    undo(browser, "2 sessions")
    browser.wait(lambda: at(10) == "session 10" and at(9_000) == "session 9000", "both sessions return")
    # A drag reaches sessions that had no rows when the drag began. The list scrolls while the pointer rests near an edge.
    browser.run(top, 0)
    browser.wait(lambda: browser.row("session 2"), "the first sessions appear")
    ActionChains(browser.driver).move_to_element(browser.run("return arguments[0].querySelector('.handle')", browser.row("session 2"))).click_and_hold().perform()
    edge = browser.run("const box = document.querySelector('#list').getBoundingClientRect(); return [Math.round(box.left + 200), Math.round(Math.min(box.bottom, innerHeight) - 15)]")
    pointer = ActionChains(browser.driver)
    pointer.w3c_actions.pointer_action.move_to_location(*edge)
    pointer.perform()
    browser.wait(lambda: browser.row("session 200"), "the list scrolls to sessions that were not listed")
    pointer = ActionChains(browser.driver)
    pointer.w3c_actions.pointer_action.move_to_location(edge[0], edge[1] - 200)
    pointer.perform()
    browser.wait(lambda: browser.run("const line = document.querySelector('.drop'); return line && !line.hidden"), "the page shows the target position")
    ActionChains(browser.driver).release().perform()
    browser.wait(lambda: "Moved 1 session." in browser.find("#toast").text and at(2) == "session 3", "the session moves there")
    undo(browser, "1 session")
    browser.wait(lambda: at(2) == "session 2", "the session returns")
    # Measures the longest frame, and the largest number of rows, during a scroll over the whole list.
    longest, most = browser.driver.execute_async_script("""
        const done = arguments[0], list = document.querySelector('#list');
        let last = performance.now(), longest = 0, step = 0, most = 0;
        const frame = (now) => { longest = Math.max(longest, now - last); last = now; list.scrollTop = (step += 1) * 4000;
            most = Math.max(most, document.querySelectorAll('.row').length);
            if (step < 120) requestAnimationFrame(frame); else done([longest, most]); };
        requestAnimationFrame(frame);""")
    require(most <= 200, most)
    print(f"longest frame while scrolling: {longest:.0f} ms")
    return browser

def hostile():
    """Markup in names is text in the browser, too."""
    browser = Browser(url)
    browser.wait(lambda: browser.run("return document.documentElement.classList.contains('scripted')"), "the script runs")
    name = queue.names()[0]
    require("<script>" in name, name)
    queue.post(f"sessions/{queue.id(name)}/cancel")
    browser.wait(lambda: browser.state(name) == "cancelled", "the row has the name as text")
    browser.find(".row a.name").click()
    browser.wait(lambda: browser.find("#dialog h2").text == name, "the details have the name as text")
    browser.run("document.querySelector('#dialog').close()")
    browser.find("a.name[href$='" + queue.id("files") + "']").click()
    browser.wait(lambda: "onerror" in browser.find("#dialog .items").text, "the details have the name of the file as text")
    require("onerror" in browser.find("#accounts").text and "onerror" in browser.find("#log").text)
    require(not browser.run("return window.attacked || document.querySelector('.row img, dialog img, #log img')"))
    return browser

def reader():
    """A page with the read-only token has no controls."""
    browser = Browser(url)
    browser.wait(lambda: len(browser.names()) == 6, "the rows")
    require(not browser.all("#sessions button") and not browser.all(".menu button[value=stop]") and not browser.all(".handle"))
    try:
        queue.post("queue/stop")
        require(False, "the read-only token stopped the queue")
    except urllib.error.HTTPError as error:
        require(error.code == 403)
    return browser

def empty():
    """The views without sessions and the confirmation questions have no accessibility problem that axe finds."""
    browser = Browser(url)
    browser.wait(lambda: "The queue is empty." in browser.find("#list").text, "the empty list")
    check(browser, "the empty queue")
    for view in ["active", "history", "drafts"]:
        browser.open("/?view=" + view)
        browser.wait(lambda: browser.all("#list .empty"), "an empty view")
        check(browser, view)
    browser.find("#help-button").click()
    browser.wait(lambda: browser.find("#dialog").is_displayed(), "the keys")
    check(browser, "the keys")
    browser.run("document.querySelector('#dialog').close()")
    account = queue.call("GET", "accounts")["accounts"][0]["name"]
    queue.post("sessions", account=account, paths=["/etc/hostname"], hold=True)
    browser.open("/")
    browser.wait(lambda: browser.names() == ["hostname"], "the session")
    browser.run("arguments[0].querySelector('input').click()", browser.row("hostname"))
    browser.find("#sessions button[value=remove]").click()
    browser.wait(lambda: browser.all("dialog[open] #ask-title"), "the question")
    check(browser, "the question")
    browser.find("dialog[open] button[value=no]").click()
    # Without a script, the question is a page.
    plain = Browser(url, scripts=False)
    plain.find("input[name=id]").click()
    plain.find("#sessions button[value=remove]").click()
    plain.wait(lambda: plain.all("button.danger[class='danger']"), "the question on its own page")
    plain.command("Emulation.setScriptExecutionDisabled", value=False)
    check(plain, "the question without a script")
    plain.close()
    browser.find("form[action='/logout'] button").click()
    browser.wait(lambda: browser.all("input[name=token]"), "the page to sign in")
    check(browser, "the page to sign in")
    return browser

def ownerless():
    """The page without an owner of the queue explains what to do."""
    browser = Browser(url)
    browser.wait(lambda: "transferq agent start" in browser.find("main").text, "the explanation")
    check(browser, "no owner")
    return browser

def looks():
    """The page fits into all widths, and has no accessibility problem that axe finds."""
    for width in [360, 768, 1024, 2560]:
        for dark in [False, True]:
            browser = Browser(url, width=width, height=1440 if width == 2560 else 900, dark=dark)
            browser.wait(lambda: browser.all("#graph svg"), "the graph")
            browser.wait(lambda: not browser.find("#notice").is_displayed(), "a connection")
            name = f"{width}-{'dark' if dark else 'light'}"
            browser.screenshot(folder, name)
            overflow = browser.run("return document.scrollingElement.scrollWidth - innerWidth")
            require(overflow <= 0, name, overflow)
            top = browser.run("const top = document.querySelector('.top'); return [top.offsetHeight, getComputedStyle(top).position]")
            require(top[0] <= 320 if width == 360 else top[0] <= 170, name, top)
            require(top[1] == "static" or top[0] <= 100, name, top)
            browser.find(".row a.name").click()
            browser.wait(lambda: browser.find("#dialog").is_displayed(), "the details")
            browser.screenshot(folder, name + "-details")
            check(browser, name + " with details")
            browser.run("document.querySelector('#dialog').close()")
            browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            check(browser, name)
            require(browser.problems() == [], browser.problems())
            browser.close()
    for name, value in [("prefers-contrast", "more"), ("forced-colors", "active"), ("prefers-reduced-motion", "reduce")]:
        browser = Browser(url, width=1024, media={name: value})
        browser.wait(lambda: browser.all("#graph svg"), "the graph")
        browser.screenshot(folder, "1024-" + name)
        check(browser, name)
        moving = browser.run("return [...document.querySelectorAll('*')].filter((each) => ![getComputedStyle(each).transitionDuration, getComputedStyle(each, '::-webkit-progress-value').transitionDuration].every((each) => parseFloat(each) === 0)).length")
        require(moving == 0 or name != "prefers-reduced-motion", moving)
        browser.close()
    browser = Browser(url, width=1200, height=760)
    browser.wait(lambda: len(browser.all("#graph .account")) == 2 and "archive" in browser.find("#graph .legend").text, "a line for each account")
    browser.screenshot(folder, "1200-light")
    return browser

axe = pathlib.Path(importlib.util.find_spec("axe_playwright_python").origin).with_name("axe.min.js").read_text()

def check(browser, name):
    browser.run(axe + "; window.axe = axe")
    result = browser.driver.execute_async_script("""
        const done = arguments[0];
        axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }).then(done, (error) => done(String(error)));""")
    require(isinstance(result, dict), result)
    found = [(violation["id"], [node["html"][:160] + " " + node.get("failureSummary", "")[:300] for node in violation["nodes"]][:4]) for violation in result["violations"]]
    require(found == [], name, found)

browser = {each.__name__: each for each in [reorder, stale, live, reconnect, forms, keys, more_keys, many, hostile, reader, empty, ownerless, looks]}[test]()
require(browser.problems() == [], browser.problems())
browser.close()
print("passed")
