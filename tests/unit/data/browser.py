"""A headless Chromium that is told by its debugging pipe what to do, for tests of pages."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
WHY_NOT = "needs Chromium: say `make chromium`, or install the package chromium"
WAIT_S = 60.0

OPTIONS = (
    *("--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu"),
    *("--disable-dev-shm-usage", "--disable-background-networking", "--disable-extensions"),
    *("--disable-component-update", "--no-default-browser-check", "--hide-scrollbars"),
)


def program():
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with one page; a context manager.

    Attributes:
        events: what the browser reported, e.g. exceptions of scripts.
    """

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        told_read, told_write = os.pipe()
        heard_read, heard_write = os.pipe()
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        profile = f"--user-data-dir={self._folder.name}"
        # The browser reads from descriptor 3 and writes to 4.
        shell = f'exec "$@" 3<&{told_read} 4>&{heard_write}'
        command = ["/bin/bash", "-c", shell, "bash", program(), *OPTIONS, *root, profile]
        self._process = subprocess.Popen(
            command,
            pass_fds=[told_read, heard_write],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(told_read)
        os.close(heard_write)
        self._out, self._in = os.fdopen(told_write, "wb", 0), os.fdopen(heard_read, "rb")
        self._number, self.events, self._session = 0, [], None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        self.shape(1440, 900)
        return self

    def __exit__(self, *_):
        self._session = None
        try:
            self.send("Browser.close")
            self._process.wait(10)
        except (OSError, AssertionError, subprocess.TimeoutExpired):
            self._process.kill()
        self._process.wait()
        self._out.close()
        self._in.close()
        self._folder.cleanup()

    def send(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            reply = self._next()
            if reply.get("id") == self._number:
                assert "error" not in reply, reply["error"]
                return reply["result"]
            self.events.append(reply)

    def _next(self):
        read = bytearray()
        while (byte := self._in.read(1)) != b"\0":
            assert byte, "the browser has ended"
            read += byte
        return json.loads(read)

    def shape(self, width, height, scale=1):
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )

    def scheme(self, name):
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def open(self, url):
        self.events.clear()
        done = self.send("Page.navigate", url="about:blank")
        done = self.send("Page.navigate", url=url)
        assert "errorText" not in done, done
        self.until("document.readyState === 'complete'")

    def run(self, code):
        """The value of an expression in the page."""
        done = self.send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def until(self, code):
        end = time.monotonic() + WAIT_S
        while not (value := self.run(code)):
            assert time.monotonic() < end, f"not in {WAIT_S} s: {code}"
            time.sleep(0.02)
        return value

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def key(self, name, text=""):
        self.send("Input.dispatchKeyEvent", type="keyDown", key=name, text=text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=name)

    def write(self, selector, text):
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.send("Input.insertText", text=text)

    def click(self, selector):
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def screenshot(self, path, *, whole=False):
        data = self.send("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        Path(path).write_bytes(base64.b64decode(data))

    @property
    def problems(self):
        """Exceptions and errors that the page caused."""
        self.run("1")
        bad = [e for e in self.events if e.get("method") == "Runtime.exceptionThrown"]
        logged = [e for e in self.events if e.get("method") == "Log.entryAdded"]
        return bad + [e for e in logged if e["params"]["entry"]["level"] == "error"]
