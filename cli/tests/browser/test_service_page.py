"""Opens the page of `simstore serve` in a browser."""

import json
import re
import signal
import subprocess
import urllib.request

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

HOSTILE = "</script><script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\"> ' \" & \u202e"
READ_TOKEN, WRITE_TOKEN = "read-token-0123456789", "write-token-0123456789"


def words(count, start=0):
    return " ".join(f"word{number}" for number in range(start, start + count))


def changed(text, number):
    """Replaces `number` words of a text, each far from the others."""
    parts = text.split()
    for at in range(number):
        parts[10 + 20 * at] = f"other{at}"
    return " ".join(parts)


class Service:
    """A running `simstore serve`, and its address."""

    def __init__(self, program, store, *options):
        arguments = [program, "serve", store, "--listen", "127.0.0.1:0", *options]
        self.process = subprocess.Popen([*map(str, arguments)], stderr=subprocess.PIPE, text=True)
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            if found := re.search(r"listening on (http://[0-9.:]+)", line):
                self.address = found[1]
            if "ready: " in line:
                return
        raise AssertionError("".join(lines))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0

    def request(self, path, body=None, token=None):
        headers = {"content-type": "application/json", **({"authorization": f"Bearer {token}"} if token else {})}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.address + path, data, headers)) as answer:
            return json.load(answer)


@pytest.fixture
def serve(simstore, tmp_path):
    """Returns a function that serves a store. `options` of `add` make the store."""
    services = []

    def start(documents, *options, serve_options=()):
        store = tmp_path / f"store{len(services)}"
        path = tmp_path / "documents.jsonl"
        path.write_text("".join(json.dumps({"id": id, "text": text}) + "\n" for id, text in documents))
        simstore("add", "--quiet", *options, store, path)
        services.append(Service(simstore.program, store, *serve_options))
        return services[-1]

    yield start
    for service in services:
        service.stop()


SIMILAR = ["--similar", "0.5", "--with-texts"]


def wait(browser, condition):
    """Waits until a condition is true, and returns its value. An element that was replaced meanwhile is looked up again."""
    return WebDriverWait(browser, 60, 0.02).until(lambda _: condition())


def element(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def texts(browser, selector):
    """Reads the texts of elements at one moment: the page may replace them."""
    script = "return [...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility()).map((e) => e.innerText.trim())"
    return browser.execute_script(script, selector)


def text(browser, selector):
    return (texts(browser, selector) or [""])[0]


def open_page(browser, service, view=""):
    # An address with another hash alone would not load the page again.
    browser.get("about:blank")
    browser.get(f"{service.address}/{view}")
    wait(browser, lambda: text(browser, "#version"))


def ask(browser, query, kind=None):
    """Enters a query, and waits for its matches."""
    if kind is not None:
        element(browser, f"#query-kind input[value={kind}]").click()
    field = element(browser, "#query-input")
    # Typing thousands of characters takes long.
    script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', { bubbles: true }))"
    browser.execute_script(script, field, query)
    field.send_keys(Keys.CONTROL, Keys.ENTER)
    wait(browser, lambda: text(browser, "#result-title"))


def names(browser):
    return texts(browser, "#matches .match .name")


def row(browser, name):
    return next(
        row for row in browser.find_elements(By.CSS_SELECTOR, "#matches > li") if row.find_element(By.CSS_SELECTOR, ".name").text == name
    )


def press(browser, name, action):
    """Presses a button, or follows a link, of the match with this name."""
    row(browser, name).find_element(By.XPATH, f".//*[self::button or self::a][normalize-space() = '{action}']").click()


def is_wider_than_window(browser):
    widths = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    return widths[0] > widths[1]


@pytest.fixture
def phone(browser):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    yield
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def prefer_dark(browser):
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [dark]})


def versions(count=5):
    """Documents near one another: the first, and copies with more and more changed words; and one that is unlike all of them."""
    base = words(200)
    return [(f"page-{number}.md", changed(base, number)) for number in range(count)] + [("unlike.md", words(100, 5000))]


def test_paste_slide_and_compare(browser, serve, screenshot):
    service = serve(versions(), *SIMILAR)
    open_page(browser, service)
    assert text(browser, "#store-line").startswith("A store of similar documents, from similarity 0.5: 6 documents")
    ask(browser, words(200))
    assert text(browser, "#result-title") == "Near the pasted text"
    assert names(browser) == [f"page-{number}.md" for number in range(5)]
    # A changed word changes three of 198 word 3-grams.
    expected = ["1"] + [f"{(198 - 3 * number) / (198 + 3 * number):.3f}" for number in range(1, 5)]
    assert texts(browser, "#matches .score") == expected

    slider = element(browser, "#threshold")
    assert (text(browser, "output"), text(browser, "#threshold-text")) == ("0.50", "5 of 5 matches")
    slider.send_keys(Keys.ARROW_RIGHT * 42)
    assert (text(browser, "output"), text(browser, "#threshold-text")) == ("0.92", "3 of 5 matches")
    assert names(browser) == ["page-0.md", "page-1.md", "page-2.md"]
    slider.send_keys(Keys.END)
    assert (text(browser, "output"), text(browser, "#threshold-text")) == ("1.00", "1 of 5 matches")
    element(browser, "#threshold-counts summary").click()
    counts = {cells[0]: cells[1:] for cells in (line.split() for line in texts(browser, "#threshold-counts tbody tr"))}
    assert (counts["0.97"], counts["0.92"], counts["0.50"]) == (["1", "2"], ["0", "3"], ["0", "5"])
    element(browser, "#threshold-counts summary").click()
    slider.send_keys(Keys.HOME)
    assert len(names(browser)) == 5

    press(browser, "page-2.md", "Compare")
    assert wait(browser, lambda: texts(browser, "#matches del")) == ["word10", "word30"]
    assert texts(browser, "#matches ins") == ["other0", "other1"]
    assert texts(browser, ".heads > div") == ["the query", "page-2.md"]
    assert texts(browser, ".skipped") == ["119 equal words left out"]
    screenshot("service-query")
    prefer_dark(browser)
    screenshot("service-query-dark")
    press(browser, "page-2.md", "Compare")
    assert texts(browser, "#matches del") == []


def test_walk_from_match_to_match(browser, serve, screenshot):
    service = serve(versions(), *SIMILAR)
    open_page(browser, service)
    ask(browser, words(200))
    press(browser, "page-3.md", "What is near it")
    wait(browser, lambda: text(browser, "#result-title") == "Near the stored document page-3.md")
    # The document itself is no match.
    assert sorted(names(browser)) == ["page-0.md", "page-1.md", "page-2.md", "page-4.md"]
    wait(browser, lambda: text(browser, "#own-text summary").startswith("Its text"))
    element(browser, "#own-text summary").click()
    assert text(browser, "#own-text .text") == changed(words(200), 3)
    press(browser, "page-4.md", "What is near it")
    wait(browser, lambda: text(browser, "#result-title").endswith("page-4.md"))
    trail = texts(browser, "#trail li")
    assert len(trail) == 3 and trail[0].startswith("word0 word1") and trail[1:] == ["page-3.md", "page-4.md"]
    screenshot("service-walk")
    # Back by the browser, and by the trail.
    browser.back()
    wait(browser, lambda: text(browser, "#result-title").endswith("page-3.md"))
    assert len(texts(browser, "#trail li")) == 2
    element(browser, "#trail a").click()
    wait(browser, lambda: text(browser, "#result-title") == "Near the pasted text")
    assert len(names(browser)) == 5 and texts(browser, "#trail li") == []
    # An address with an id is a query of its own.
    open_page(browser, service, "#query/id/page-1.md")
    wait(browser, lambda: text(browser, "#result-title").endswith("page-1.md"))
    open_page(browser, service, "#query/id/missing")
    wait(browser, lambda: "no document has the id `missing`" in text(browser, "#failure"))
    browser.get_log("browser")


def test_verdicts_are_read_by_evaluate(browser, simstore, serve, tmp_path):
    service = serve(versions(), *SIMILAR)
    folder = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", folder)
    open_page(browser, service)
    ask(browser, words(200))
    press(browser, "page-1.md", "Same")
    press(browser, "page-4.md", "Not the same")
    press(browser, "page-2.md", "Same")
    press(browser, "page-2.md", "Not the same")
    press(browser, "page-3.md", "Same")
    # The same verdict once more takes it back.
    press(browser, "page-3.md", "Same")
    assert text(browser, "#verdict-text").startswith("3 pairs: 1 the same, 2 not the same.")
    # A pair of two stored documents is one pair, whichever was the query.
    press(browser, "page-0.md", "What is near it")
    wait(browser, lambda: text(browser, "#result-title").endswith("page-0.md"))
    press(browser, "page-1.md", "Same")
    press(browser, "page-1.md", "What is near it")
    wait(browser, lambda: text(browser, "#result-title").endswith("page-1.md"))
    pressed = row(browser, "page-0.md").find_elements(By.CSS_SELECTOR, "[aria-pressed=true]")
    assert [button.text for button in pressed] == ["Same"]
    # The page warns before it forgets them.
    warns = "const event = new Event('beforeunload', { cancelable: true }); dispatchEvent(event); return event.defaultPrevented"
    assert browser.execute_script(warns)
    element(browser, "#export-verdicts").click()
    file = tmp_path / "verdicts.jsonl"
    wait(browser, file.exists)
    assert not browser.execute_script(warns)
    pairs = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(pair.get("id_a"), pair["id_b"], pair["label"]) for pair in pairs] == [
        (None, "page-1.md", True),
        (None, "page-4.md", False),
        (None, "page-2.md", False),
        ("page-0.md", "page-1.md", True),
    ]
    assert [pair["text_b"] for pair in pairs[:2]] == [changed(words(200), 1), changed(words(200), 4)]
    assert (pairs[0]["text_a"], pairs[3]["text_a"]) == (words(200), words(200))
    lines = simstore("evaluate", file, "--json", "--similar", "0.9").splitlines()
    summary = json.loads(lines[-1])
    assert (summary["positives"], summary["negatives"]) == (2, 2)


def test_fingerprints_bit_by_bit(browser, serve, screenshot):
    service = serve([(f"page-{at}", words(60, at)) for at in range(4)], "--distance", "6")
    fingerprint = service.request("/documents/page-0")["fingerprints"][0]
    flipped = f"{int(fingerprint, 16) ^ (1 << 63) ^ (1 << 40) ^ 1:016x}"
    open_page(browser, service)
    # Digits are recognized as a fingerprint.
    ask(browser, flipped)
    assert text(browser, "#result-title") == f"Near the fingerprint {flipped}"
    assert "page-0" in names(browser)
    scores = dict(zip(names(browser), texts(browser, "#matches .score"), strict=True))
    assert scores["page-0"] == "3 bits"
    press(browser, "page-0", "Compare")
    wait(browser, lambda: texts(browser, ".bits"))
    assert text(browser, ".where") == "Bits 0, 23, 63 differ. Bit 0 is the most significant one."
    columns = browser.find_elements(By.CSS_SELECTOR, ".bit")
    assert len(columns) == 64
    marked = [at for at, column in enumerate(columns) if column.find_element(By.CSS_SELECTOR, ".mark").get_property("textContent") == "▲"]
    assert marked == [0, 23, 63]
    shown = ["".join(texts(browser, f".bit > span:nth-child({side})")) for side in [1, 2]]
    assert [f"{int(bits, 2):016x}" for bits in shown] == [flipped, fingerprint]
    screenshot("service-bits")
    element(browser, "#threshold").send_keys(Keys.END)
    assert (text(browser, "output"), names(browser)) == ("0 bits", [])
    element(browser, "#threshold").send_keys(Keys.ARROW_LEFT * 3)
    assert (text(browser, "output"), "page-0" in names(browser)) == ("3 bits", True)


def test_a_store_of_128_bits_without_ids_or_texts(browser, simstore, tmp_path, screenshot):
    file, store = tmp_path / "f.hex", tmp_path / "wide"
    numbers = [(0x0123456789ABCDEF_FEDCBA9876543211 * step) % 2**128 for step in range(1, 40)]
    numbers += [number ^ (1 << at) for at, number in enumerate(numbers[:20])]
    file.write_text("".join(f"{number:032x}\n" for number in numbers))
    simstore("build", "--quiet", "--bits", "128", "--no-ids", store, file)
    service = Service(simstore.program, store)
    try:
        open_page(browser, service)
        assert texts(browser, "#query-kind label") == ["a fingerprint"]
        ask(browser, f"{numbers[0]:032x}")
        assert names(browser) == [f"{numbers[0]:032x}", f"{numbers[39]:032x}"]
        press(browser, f"{numbers[39]:032x}", "Compare")
        wait(browser, lambda: texts(browser, ".bits"))
        assert len(browser.find_elements(By.CSS_SELECTOR, ".bit")) == 128
        assert text(browser, ".where").startswith("Bit 127 differs.")
        screenshot("service-bits-128")
        press(browser, f"{numbers[39]:032x}", "Same")
        assert "add the fields text_a and text_b" in text(browser, "#export-text")
    finally:
        service.stop()


def test_segments_tables_and_blocks(browser, simstore, serve, screenshot):
    service = serve([(f"page-{at}", words(40, 50 * at)) for at in range(3000)], "--codec", "first-difference", "--distance", "3")
    service.request("/flush", {})
    service.request("/documents?if_new=false", {"id": "late", "text": "a late document"})
    segments = service.request("/segments")
    open_page(browser, service, "#store")
    rows = wait(browser, lambda: texts(browser, "#segments tbody tr"))
    assert len(rows) == len(segments) and rows[0].startswith(f"segment {segments[0]['number']}")
    assert dict(zip(texts(browser, "#store-counts dt"), texts(browser, "#store-counts dd"), strict=True))["documents"] == "3,001"
    element(browser, "#segments a").click()
    tables = wait(browser, lambda: texts(browser, "#segment tbody tr"))
    assert len(tables) == len(segments[0]["tables"])
    first = segments[0]["tables"][0]
    assert f"{first['bits_per_fingerprint']:.2f}" in tables[0] and f"{first['floor_bits_per_fingerprint']:.2f}" in tables[0]
    screenshot("service-segments")
    prefer_dark(browser)
    screenshot("service-segments-dark")
    element(browser, "#segment tbody a").click()
    wait(browser, lambda: texts(browser, "#table figure"))
    details = service.request(f"/segments/{segments[0]['number']}/tables/0")
    bars = browser.execute_script("return [...document.querySelectorAll('#table rect title')].map((e) => e.textContent)")
    expected = [f"bit {bit}, fingerprints: {number:,}" for bit, number in enumerate(details["histogram"]) if number > 0]
    assert bars == expected
    element(browser, "#table p a").click()
    codes = wait(browser, lambda: texts(browser, "#block tbody tr"))
    block = service.request(f"/segments/{segments[0]['number']}/tables/0/blocks/0")
    assert len(codes) == 64 < len(block["values"])
    assert codes[0].split()[1:3] == ["as", "it"] and codes[0].endswith(block["values"][0]["original"])
    assert f"differs from bit {block['values'][1]['differing_bit']} on" in codes[1]
    bits = browser.execute_script("return [...document.querySelectorAll('.bit-row')].map((e) => e.textContent)")
    assert [f"{int(row, 2):016x}" for row in bits] == [value["permuted"] for value in block["values"][:64]]
    screenshot("service-block")
    element(browser, "#block .codes button").click()
    assert len(texts(browser, "#block tbody tr")) == len(block["values"])
    # The next block, by the keyboard.
    field = element(browser, "#block-number")
    field.clear()
    field.send_keys("1", Keys.ENTER)
    wait(browser, lambda: text(browser, "#block h2").startswith("Block 1 "))
    open_page(browser, service, "#store/999")
    wait(browser, lambda: "There is no segment 999" in text(browser, "#segment"))


def test_where_the_last_query_looked(browser, serve, screenshot):
    service = serve([(f"page-{at}", words(40, 50 * at)) for at in range(500)], "--distance", "3")
    service.request("/flush", {})
    open_page(browser, service)
    fingerprint = service.request("/documents/page-7")["fingerprints"][0]
    ask(browser, fingerprint)
    element(browser, "#result > p > a").click()
    rows = wait(browser, lambda: texts(browser, "#trace tbody tr"))
    trace = service.request("/trace", {"fingerprint": fingerprint})
    tables = [table for segment in trace["segments"] for table in segment["tables"]]
    assert [int(row.split()[-1]) for row in rows] == [table["found"] for table in tables]
    assert [int(row.split()[4]) for row in rows] == [table["probes"] for table in tables]
    assert text(browser, "#trace h2") == f"Where the last query looked: {fingerprint}"
    screenshot("service-trace")


def test_codes_of_all_differences(browser, simstore, serve, screenshot):
    # Near fingerprints have codes with few differing bits.
    service = serve([(f"page-{at}", changed(words(300), at % 10) + f" end{at}") for at in range(500)], "--codec", "all-differences")
    service.request("/flush", {})
    segment = service.request("/segments")[0]["number"]
    open_page(browser, service, f"#store/{segment}/0/0")
    codes = wait(browser, lambda: texts(browser, "#block tbody td:nth-child(2)"))
    assert codes[0] == "as it is" and any(code.startswith("differs in 2^") for code in codes)
    screenshot("service-all-differences")


def test_health_is_refreshed(browser, serve, screenshot):
    service = serve(versions(), *SIMILAR)
    open_page(browser, service, "#health")

    def tile(label):
        return dict(zip(texts(browser, "#health-tiles dt"), texts(browser, "#health-tiles dd"), strict=True)).get(label)

    wait(browser, lambda: tile("segments"))
    assert text(browser, "#health-state") == "The service answers, and the store reports no error."
    assert texts(browser, "#health-errors li") == ["none since the service started"]
    before = tile("pairs in memory, not in segments")
    service.request("/documents", {"id": "new", "text": words(30, 9000)})
    wait(browser, lambda: tile("pairs in memory, not in segments") != before)
    service.request("/flush", {})
    wait(browser, lambda: tile("memtables written").startswith("1, "))
    requests = "#health-requests tbody tr"
    wait(browser, lambda: ["POST", "/documents", "201", "1"] in [line.split()[:4] for line in texts(browser, requests)])
    screenshot("service-health")
    # Another view asks for nothing.
    element(browser, "header nav a").click()
    wait(browser, lambda: texts(browser, "#query-form"))
    script = "return performance.getEntriesByType('resource').filter((entry) => entry.name.endsWith('/metrics')).length"
    wait(browser, lambda: browser.execute_script(script) > 0)
    asked = browser.execute_script(script)
    browser.execute_async_script("setTimeout(arguments[0], 2500)")
    assert browser.execute_script(script) == asked


def test_names_and_texts_with_markup_are_shown_as_they_are(browser, serve):
    body = f"{HOSTILE} {words(40)}"
    service = serve([(HOSTILE, body), ("b" + HOSTILE, body + " <b>bold</b>")], *SIMILAR)
    open_page(browser, service)
    ask(browser, body)
    shown = browser.execute_script("return [...document.querySelectorAll('#matches .name')].map((e) => e.textContent)")
    assert shown == [HOSTILE, "b" + HOSTILE]
    for open_button in browser.find_elements(By.XPATH, "//button[text()='Compare']"):
        open_button.click()
    wait(browser, lambda: len(texts(browser, ".comparison")) == 2)
    passages = browser.execute_script("return [...document.querySelectorAll('.passage:not(.heads) > div')].map((e) => e.textContent)")
    assert sum("<img src=x onerror=" in passage for passage in passages) == 4
    browser.find_elements(By.XPATH, "//a[text()='What is near it']")[0].click()
    wait(browser, lambda: text(browser, "#result-title").startswith("Near the stored document"))
    assert element(browser, "#result-title bdi").get_property("textContent") == HOSTILE
    wait(browser, lambda: text(browser, "#own-text summary"))
    assert element(browser, "#own-text .text").get_property("textContent") == body
    assert browser.find_elements(By.CSS_SELECTOR, "main img, main b, main script") == []
    assert browser.title == "simstore"


def test_a_token_is_asked_for_and_kept_in_memory(browser, serve, screenshot, tmp_path):
    for name, token in [("read", READ_TOKEN), ("write", WRITE_TOKEN)]:
        (tmp_path / name).write_text(token)
    options = ["--read-token-file", tmp_path / "read", "--write-token-file", tmp_path / "write"]
    service = serve(versions(), *SIMILAR, serve_options=options)
    browser.get(service.address)
    wait(browser, lambda: text(browser, "#token-text"))
    assert text(browser, "#token-text") == "This service needs a token for reading."
    screenshot("service-token")
    browser.switch_to.active_element.send_keys("a-wrong-token-0123456789", Keys.ENTER)
    wait(browser, lambda: "does not know this token" in text(browser, "#token-text"))
    browser.switch_to.active_element.send_keys(READ_TOKEN, Keys.ENTER)
    wait(browser, lambda: text(browser, "#version"))
    ask(browser, words(200))
    press(browser, "page-1.md", "Compare")
    wait(browser, lambda: texts(browser, ".comparison"))
    assert browser.execute_script("return localStorage.length + sessionStorage.length + document.cookie.length") == 0
    assert READ_TOKEN not in browser.current_url and READ_TOKEN not in browser.page_source
    browser.refresh()
    wait(browser, lambda: text(browser, "#token-text"))
    # The browser itself reports answers with the status 401.
    assert {entry["message"].rsplit("status of ", 1)[1] for entry in browser.get_log("browser")} == {"401 (Unauthorized)"}


def test_the_policy_blocks_other_scripts_and_addresses(browser_process, serve):
    service = serve(versions(), *SIMILAR)
    open_page(browser_process, service)
    with urllib.request.urlopen(service.address) as answer:
        policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "frame-ancestors 'none'" in policy
    browser_process.get_log("browser")
    browser_process.execute_script(
        "const script = document.createElement('script'); script.textContent = 'document.title = 1'; document.body.append(script);"
        "const image = new Image(); image.src = 'http://127.0.0.1:9/x.png'; document.body.append(image);"
        "fetch('http://127.0.0.1:9/').catch(() => undefined);"
    )
    messages = wait(browser_process, lambda: browser_process.get_log("browser"))
    assert browser_process.title == "simstore"
    for directive in ["script-src", "img-src", "connect-src"]:
        assert any(directive in entry["message"] for entry in messages), directive


def test_a_phone_shows_all_views_without_scrolling_sideways(browser, serve, screenshot, phone):
    long = "https://example.org/" + "path/" * 40
    service = serve([(long, words(200)), (long + "copy", changed(words(200), 3))], *SIMILAR)
    service.request("/flush", {})
    open_page(browser, service)
    ask(browser, words(200))
    press(browser, long, "Compare")
    wait(browser, lambda: texts(browser, ".comparison"))
    assert not is_wider_than_window(browser)
    screenshot("service-phone-query")
    segment = service.request("/segments")[-1]["number"]
    open_page(browser, service, f"#store/{segment}/0/0")
    wait(browser, lambda: texts(browser, "#block tbody tr"))
    assert not is_wider_than_window(browser)
    screenshot("service-phone-store")
    open_page(browser, service, "#health")
    wait(browser, lambda: texts(browser, "#health-tiles dd"))
    assert not is_wider_than_window(browser)
    screenshot("service-phone-health")


def test_the_keyboard_alone(browser, serve):
    service = serve(versions(), *SIMILAR)
    open_page(browser, service)

    def focused():
        return browser.execute_script("return document.activeElement.innerText || document.activeElement.id")

    def tab_to(name):
        for _ in range(40):
            if focused() == name:
                return
            browser.switch_to.active_element.send_keys(Keys.TAB)
        raise AssertionError(f"{name}: {focused()}")

    tab_to("Skip to the content")
    tab_to("query-input")
    browser.switch_to.active_element.send_keys(words(12), Keys.CONTROL, Keys.ENTER)
    wait(browser, lambda: text(browser, "#result-title"))
    browser.execute_script("document.getElementById('query-input').value = ''")
    ask(browser, words(200))
    tab_to("threshold")
    tab_to("Compare")
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    wait(browser, lambda: texts(browser, ".comparison"))
    tab_to("What is near it")
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    wait(browser, lambda: text(browser, "#result-title") == "Near the stored document page-0.md")
    # The focus moves to the new result.
    assert focused() == "Near the stored document page-0.md"
