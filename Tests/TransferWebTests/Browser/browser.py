"""Starts a real browser on the page, and reads the queue through the HTTP interface."""
import json
import pathlib
import tempfile
import urllib.request

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.support.ui import WebDriverWait


class Queue:
    """The queue, as a client of the HTTP interface sees it."""

    def __init__(self, origin, token):
        self.origin, self.token = origin, token

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            self.origin + "/api/v1/" + path, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": "Bearer " + self.token, "Content-Type": "application/json"})
        with urllib.request.urlopen(request) as response:
            return json.loads(response.read() or "null")

    def post(self, path, **body):
        return self.call("POST", path, body)

    def sessions(self, query="limit=500"):
        return self.call("GET", "sessions?" + query)["sessions"]

    def names(self):
        return [session["name"] for session in self.sessions()]

    def id(self, name):
        return next(session["id"] for session in self.sessions() if session["name"] == name)


class Browser:
    """A browser that is signed in."""

    def __init__(self, url, width=1280, height=900, dark=False, scripts=True, media=None):
        self.url, self.origin = url, url.split("/login")[0]
        self.profile = tempfile.TemporaryDirectory()
        options = webdriver.ChromeOptions()
        # Chromium's own sandbox does not work for root.
        for argument in ["headless=new", "no-sandbox", "disable-dev-shm-usage", "hide-scrollbars", "force-color-profile=srgb",
                         f"user-data-dir={self.profile.name}", f"window-size={width},{height}"]:
            options.add_argument("--" + argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
        self.size(width, height)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        features += [{"name": name, "value": value} for name, value in (media or {}).items()]
        self.command("Emulation.setEmulatedMedia", features=features)
        if not scripts:
            self.command("Emulation.setScriptExecutionDisabled", value=True)
        self.driver.get(url)

    def command(self, name, **parameters):
        return self.driver.execute_cdp_cmd(name, parameters)

    def size(self, width, height):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, path):
        self.driver.get(self.origin + path)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def names(self):
        """The names of the rows, in their order on the screen."""
        return self.run("return [...document.querySelectorAll('.row .name')].map((each) => each.textContent)")

    def row(self, name):
        return self.run("return [...document.querySelectorAll('.row')].find((row) => row.querySelector('.name').textContent === arguments[0])", name)

    def state(self, name):
        return self.run("const row = arguments[0]; return row && row.dataset.state", self.row(name))

    def wait(self, condition, what, seconds=60):
        """Waits until condition() is true. `what` describes the condition in the error. The limit only ends a test that can't succeed."""
        def check(_):
            try:
                return condition()
            except Exception as error:  # An element was replaced while the condition read it.
                self.error = error
                return False
        try:
            WebDriverWait(self.driver, seconds, poll_frequency=0.05).until(check)
        except TimeoutException:  # Read the page only now, because it may have changed during the wait.
            raise AssertionError(f"{what}; the page shows {self.names()}, {self.find('body').text[:1500]}") from None

    def problems(self):
        """The errors and violations of the content security policy in the browser's log, except failed requests."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] == "SEVERE" and "Failed to load resource" not in entry["message"] and "net::ERR" not in entry["message"]]

    def screenshot(self, folder, name):
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(pathlib.Path(folder) / f"{name}.png"))

    def close(self):
        self.driver.quit()
        self.profile.cleanup()
