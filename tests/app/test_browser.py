"""The page in headless Chromium, as a user has it: drop, keyboard, phone and desk width, light and dark.

Skipped where there is no `chromium` on the PATH.
"""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from PIL import Image

from sphynx.app.opening import redirecting_file
from sphynx.program.interpret import interpret
from sphynx.service.pictures import pixels_of
from tests.app.conftest import Scene, pixels
from tests.app.devtools import CHROMIUM, Browser
from tests.app.test_answers import png

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH")

ANSWER = "document.body.dataset.answer || document.getElementById('trouble').textContent"
DROP = """
(() => {
  const bytes = Uint8Array.from(atob("%s"), (letter) => letter.charCodeAt(0)), data = new DataTransfer();
  data.items.add(new File([bytes], "picture.png", { type: "image/png" }));
  delete document.body.dataset.answer;
  const dropped = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
  document.getElementById("drop").dispatchEvent(dropped);
})()
"""


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")])
def test_a_dropped_picture_is_answered_privately(
    scene: Scene, browser: Browser, width: int, scheme: str, tmp_path: Path
) -> None:
    image = pixels(width)
    browser.look(width, 844, scheme)
    browser.call("Page.navigate", url=scene.app.url)
    browser.wait_for("document.querySelectorAll('#samples button').length")
    browser.evaluate(DROP % base64.b64encode(png(image)).decode())
    found = json.loads(browser.wait_for(ANSWER))
    expected = interpret(scene.compiled.program, scene.compiled.weights, image[None])[0].tolist()
    assert found["integer_logits"] == expected
    assert browser.evaluate("document.querySelector('#bars li span').textContent") == found["labels"][0]
    assert "never saw" in browser.evaluate("document.getElementById('status').textContent")
    assert browser.evaluate("document.getElementById('original').width") == image.shape[2]
    assert browser.evaluate("document.querySelectorAll('#history li').length") == 1
    # Each dot of the canvas is a byte of the server's record.
    drawn = browser.evaluate(
        "(() => { const c = document.getElementById('received');"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " return Array.from(d).filter((_, n) => n % 4 === 0 && d[n + 3] === 255); })()"
    )
    assert bytes(drawn) == scene.record.masked_pictures[-1]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width  # nothing sticks out
    ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground.removeprefix("rgb(").removesuffix(")").split(","))) > 384) == (scheme == "light")
    (tmp_path / "page.png").write_bytes(browser.screenshot())
    assert browser.complaints == []
    assert {urlsplit(url).netloc for url in browser.requests if url != "about:blank"} == {
        urlsplit(scene.app.url).netloc
    }


def test_the_file_for_the_browser_leads_to_the_page(scene: Scene, browser: Browser) -> None:
    with redirecting_file(scene.app.url) as file:
        browser.call("Page.navigate", url=file.as_uri())
        browser.wait_for("document.querySelectorAll('#samples button').length")
        assert browser.evaluate("location.href") == scene.app.url and browser.evaluate("document.referrer") == ""
    assert browser.complaints == []


def test_the_keyboard_reaches_everything_and_everything_has_a_name(scene: Scene, browser: Browser) -> None:
    browser.look(1280, 844, "light")
    browser.call("Page.navigate", url=scene.app.url)
    browser.wait_for("document.querySelectorAll('#samples button').length")
    reached = []
    browser.evaluate("document.getElementById('advanced').open = true")
    for _ in range(24):
        browser.press("Tab", 9)
        reached.append(browser.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert {"file", "camera", "clear", "link", "sunset"} <= set(reached)
    unnamed = browser.evaluate(
        "[...document.querySelectorAll('button, input, canvas, progress')].filter((e) =>"
        " !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).map((e) => e.id)"
    )
    assert unnamed == []
    browser.evaluate("document.querySelector('#samples li:nth-last-child(2) button').focus()")
    browser.call(
        "Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r"
    )
    assert json.loads(browser.wait_for(ANSWER))["labels"]
    browser.evaluate("delete document.body.dataset.answer; document.getElementById('clear').click()")
    assert json.loads(browser.wait_for(ANSWER))["labels"]
    assert "sees the picture" in browser.evaluate("document.getElementById('status').textContent")
    assert "stays here" not in browser.evaluate("document.querySelector('main').innerText")
    browser.evaluate(
        "document.getElementById('link').stepUp(2), document.getElementById('link').dispatchEvent(new Event('input'))"
    )
    assert browser.wait_for("document.getElementById('link-says').textContent.startsWith('Estimate over a WAN')")
    assert browser.complaints == []


COPY = """
(async () => {
  const bytes = Uint8Array.from(atob("%s"), (letter) => letter.charCodeAt(0));
  delete document.body.dataset.answer;
  await navigator.clipboard.write([new ClipboardItem({ "image/png": new Blob([bytes], { type: "image/png" }) })]);
})()
"""


def test_a_pasted_picture_is_answered_privately(scene: Scene, browser: Browser) -> None:
    image = pixels(7)
    browser.look(1280, 844, "light")
    browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.call("Page.navigate", url=scene.app.url)
    browser.wait_for("document.querySelectorAll('#samples button').length")
    browser.call("Page.bringToFront")
    browser.evaluate(COPY % base64.b64encode(png(image)).decode())
    browser.paste()
    found = json.loads(browser.wait_for(ANSWER))
    assert found["integer_logits"] == interpret(scene.compiled.program, scene.compiled.weights, image[None])[0].tolist()
    browser.evaluate("navigator.clipboard.writeText('only words')")
    browser.paste()
    assert "holds no picture" in browser.wait_for("document.getElementById('trouble').textContent")
    assert browser.complaints == []


# Keeps what the page takes from the camera, beside asking about it.
TAP = """
HTMLCanvasElement.prototype.toBlob = new Proxy(HTMLCanvasElement.prototype.toBlob, {
  apply(original, canvas, [done, kind]) {
    original.call(canvas, async (blob) => {
      window.taken = Array.from(new Uint8Array(await blob.arrayBuffer()));
      done(blob);
    }, kind);
  },
});
"""


def test_a_picture_from_the_camera_is_answered_privately(scene: Scene, tmp_path: Path) -> None:
    """Chromium's own fake camera, which shows a moving pattern."""
    flags = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")
    with Browser(tmp_path / "profile", *flags) as browser:
        browser.look(390, 844, "light")
        browser.call("Page.navigate", url=scene.app.url)
        browser.wait_for("document.querySelectorAll('#samples button').length")
        browser.evaluate(TAP)
        browser.evaluate("document.getElementById('camera').click()")
        browser.wait_for("!document.getElementById('shoot').disabled")
        assert browser.evaluate("document.activeElement.id") == "shoot"
        browser.evaluate("document.getElementById('shoot').click()")
        found = json.loads(browser.wait_for(ANSWER))
        taken = Image.open(io.BytesIO(bytes(browser.evaluate("window.taken"))))
        assert taken.size == (640, 480) and len(set(taken.convert("L").tobytes())) > 1
        image = pixels_of(taken, scene.compiled.program)
        expected = interpret(scene.compiled.program, scene.compiled.weights, image[None])[0].tolist()
        assert found["integer_logits"] == expected
        # The camera is off again, and can be used once more.
        assert browser.evaluate("document.getElementById('camera-view').hidden")
        browser.evaluate("document.getElementById('camera').click()")
        browser.wait_for("!document.getElementById('shoot').disabled")
        browser.evaluate("document.getElementById('camera-off').click()")
        assert browser.evaluate("document.getElementById('shoot').disabled && document.activeElement.id === 'camera'")
        assert browser.complaints == []
