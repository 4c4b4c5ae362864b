"""The picture of the topology lab in a real browser: drawn, turned, hovered, clicked, and small enough to send."""

import io
import re

from PIL import Image
from playwright.sync_api import Page, expect

SHARP = """() => [...document.querySelectorAll('*')].some(
  e => e.shadowRoot?.querySelector('.picture')?.dataset.ratio >= 1.5)"""
NEAREST = """root => { const { picker, scene, canvas } = root.view; let best = 0;
  for (let i = 0; i < scene.chips; i++) if (picker.w[i] < picker.w[best]) best = i;
  const box = canvas.getBoundingClientRect();
  return [best, box.left + picker.x[best], box.top + picker.y[best]]; }"""
NO_WEBGL = """const get = HTMLCanvasElement.prototype.getContext;
  HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
    return kind === "webgl2" ? null : get.call(this, kind, ...more); };"""


def settled(page: Page) -> None:
    """Waits until the page has run and the picture is drawn at its sharpest."""
    page.wait_for_function(SHARP)
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")


def pixels(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(page.locator(".picture").screenshot())).convert("RGB")


def drawn_share(image: Image.Image) -> float:
    """Share of pixels that differ from the most frequent colour, the paper."""
    counts = sorted((n for n, _ in image.getcolors(image.width * image.height)), reverse=True)
    return 1 - counts[0] / sum(counts)


def test_a_chip_is_drawn_hovered_clicked_and_failed(visit, server):
    page = visit(f"{server}/topology?spec=v5p:4x4x8", height=1400)
    settled(page)
    before = pixels(page)
    assert drawn_share(before) > 0.03
    box = page.locator(".picture").bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 160, box["y"] + 90, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"[?&]camera=-98,35,1(&|$)"))
    settled(page)
    assert pixels(page).tobytes() != before.tobytes()
    chip, x, y = page.locator(".network3d").evaluate(NEAREST)
    red, green, blue = pixels(page).getpixel((int(x - box["x"]), int(y - box["y"])))
    assert max(red, green, blue) - min(red, green, blue) < 60 and red < 190  # a grey ball where the pointer will be
    page.mouse.move(x - 1, y)
    page.mouse.move(x, y)
    at = f"x {chip // 32} · y {chip // 8 % 4} · z {chip % 8}"
    expect(page.locator(".tip")).to_contain_text(f"Chip {chip}")
    expect(page.locator(".tip")).to_contain_text(at)
    page.mouse.click(x, y)
    page.get_by_role("button", name="Fail chip").click()
    expect(page).to_have_url(re.compile(rf"[?&]fail=chip(%3D|=){chip}(&|$)"))
    expect(page).to_have_url(re.compile(r"[?&]camera=-98,35,1(&|$)"))
    page.get_by_role("button", name=f"Repair chip {chip}").click()
    expect(page).not_to_have_url(re.compile("fail="))


def test_9_600_chips_are_drawn_from_under_two_megabytes(visit, server):
    received = []
    page = visit("about:blank")
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: received.append(len(frame))))
    page.goto(f"{server}/topology?spec=8t:20x20x24")
    settled(page)
    picture = page.locator(".picture")
    assert (picture.get_attribute("data-nodes"), picture.get_attribute("data-links")) == ("9600", "28800")
    assert drawn_share(pixels(page)) > 0.1
    assert 20_000 < sum(received) < 2_000_000
    expect(picture).to_have_attribute("aria-label", re.compile("9,600 chips, 28,800 links.* Arrow keys turn it"))
    page.add_init_script(NO_WEBGL)
    page.goto(f"{server}/topology?spec=boardfly:64&route=0-63")
    settled(page)
    expect(page.get_by_text("This browser has no WebGL 2")).to_be_visible()
    assert drawn_share(pixels(page)) > 0.03
