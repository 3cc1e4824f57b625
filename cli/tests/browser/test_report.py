"""Opens pages of `simstore dedup --report` in a browser."""

import json

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

HOSTILE = "</script><script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\"> ' \" & \u202e"


def write_documents(path, documents):
    with open(path, "w", encoding="utf-8") as lines:
        for id, text in documents:
            lines.write(json.dumps({"id": id, "text": text}) + "\n")


def words(count, start=0):
    return " ".join(f"word{number}" for number in range(start, start + count))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


def report(simstore, folder, documents, *options):
    """Makes a report of the documents, and returns its address."""
    path, page = folder / "pages.jsonl", folder / "report.html"
    write_documents(path, documents)
    simstore("dedup", path, "--report", page, "--quiet", *options)
    return page.as_uri()


def text(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector).text


def texts(browser, selector):
    return [element.text for element in browser.find_elements(By.CSS_SELECTOR, selector)]


def wait_filled(browser, summary):
    """Waits until an opened `details` element has its content: the page adds it a moment after the click."""
    script = "return arguments[0].parentElement.childElementCount > 1"
    WebDriverWait(browser, 60, 0.02).until(lambda _: browser.execute_script(script, summary))


def open_details(browser, selector):
    """Opens all `details` elements with these `summary` elements."""
    for summary in browser.find_elements(By.CSS_SELECTOR, selector):
        summary.click()
        wait_filled(browser, summary)


def test_a_comparison_marks_what_differs(browser, simstore, folder, screenshot):
    base = words(200)
    changed = base.replace("word50 word51", "another").replace("word120", "word120 more")
    browser.get(report(simstore, folder, [("kept.md", base), ("removed.md", changed), ("other.md", words(90, 900))]))
    assert dict(zip(texts(browser, "#counts dt"), texts(browser, "#counts dd")))["removed"] == "1 (33.3%)"
    open_details(browser, ".cluster > summary")
    open_details(browser, ".member > summary")
    assert [part.strip() for part in texts(browser, "del")] == ["word50 word51"]
    assert [part.strip() for part in texts(browser, "ins")] == ["another", "more"]
    kept, removed = browser.find_elements(By.CSS_SELECTOR, ".heads > div")
    assert (kept.text, removed.text) == ("kept: kept.md", "removed: removed.md")
    assert texts(browser, ".skipped") == ["19 equal words left out", "29 equal words left out"]
    # On the left all words of the kept text are there, except those left out.
    left = " ".join(texts(browser, ".passage:not(.heads) > div:first-child"))
    assert "word49 word50 word51 word52" in " ".join(left.split())
    screenshot("report-comparison")
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [dark]})
    screenshot("report-dark")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    screenshot("report-print")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def test_a_phone_shows_the_page_without_scrolling_sideways(browser, simstore, folder, screenshot):
    long = "https://example.org/" + "path/" * 40
    browser.get(report(simstore, folder, [(long, words(200)), (long + "copy", words(200))]))
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        open_details(browser, ".cluster > summary")
        open_details(browser, ".member > summary")
        widths = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert widths[0] <= widths[1]
        browser.save_screenshot(str(__import__("conftest").SCREENSHOTS / "report-phone.png"))
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_names_and_texts_with_markup_are_shown_as_they_are(browser, simstore, folder):
    body = f"{HOSTILE} {words(40)}"
    browser.get(report(simstore, folder, [(HOSTILE, body), ("b" + HOSTILE, body), ("c", body + " <b>bold</b>")]))
    assert browser.title == "Deduplication report"
    open_details(browser, ".cluster > summary")
    open_details(browser, ".member > summary")
    name = browser.find_element(By.CSS_SELECTOR, ".cluster > summary .name")
    assert name.get_property("textContent") == HOSTILE
    passages = [passage.get_property("textContent") for passage in browser.find_elements(By.CSS_SELECTOR, ".passage > div")]
    assert sum(HOSTILE in passage for passage in passages) == 3 + 4
    assert browser.find_elements(By.CSS_SELECTOR, "main img, main b, main script") == []
    assert browser.title == "Deduplication report"


def test_the_policy_blocks_other_scripts(browser_process, simstore, folder):
    browser_process.get(report(simstore, folder, [("a", words(30)), ("b", words(30))]))
    browser_process.get_log("browser")
    browser_process.execute_script(
        "const script = document.createElement('script'); script.textContent = 'document.title = 1'; document.body.append(script);"
        "const image = new Image(); image.src = 'http://127.0.0.1:9/x.png'; document.body.append(image);"
    )
    messages = [entry["message"] for entry in browser_process.get_log("browser")]
    assert browser_process.title == "Deduplication report"
    assert any("script-src" in message for message in messages)
    assert any("default-src" in message or "img-src" in message for message in messages)


def test_the_slider_counts_other_thresholds(browser, simstore, folder, screenshot):
    documents = []
    for group in range(40):
        base = [f"g{group}w{number}" for number in range(100)]
        documents.append((f"{group}-0", " ".join(base)))
        # Each changed word changes three of some hundred shingles.
        for changes in [1, 2, 4, 6]:
            copy = base.copy()
            for change in range(changes):
                copy[10 + 9 * change] = f"g{group}c{changes}x{change}"
            documents.append((f"{group}-{changes}", " ".join(copy)))
    browser.get(report(simstore, folder, documents))
    slider = browser.find_element(By.ID, "threshold")
    assert "is the threshold of this run" in text(browser, "#threshold-text")
    slider.send_keys(Keys.ARROW_RIGHT * 5)
    assert text(browser, "#threshold-row output") == "0.85"
    # The similarity with 4 changed words is (98 - 12) / (98 + 12) = 0.78: below the threshold of the run. Up to 2 changed words: 0.88.
    assert text(browser, "#threshold-text").startswith("At 0.85: 0 of the 80 removed documents")
    slider.send_keys(Keys.ARROW_RIGHT * 5)
    assert text(browser, "#threshold-text").startswith("At 0.90: 40 of the 80 removed documents")
    slider.send_keys(Keys.ARROW_LEFT * 15)
    assert text(browser, "#threshold-row output") == "0.75"
    assert "From 0.75 to 0.8:" in text(browser, "#threshold-text")
    browser.find_element(By.CSS_SELECTOR, "#histogram-numbers > summary").click()
    rows = {row.split(" ", 3)[0]: row for row in texts(browser, "#histogram-numbers tbody tr")}
    assert rows["0.88"].endswith(" 40")
    screenshot("report-histogram")


def test_thousands_of_clusters_are_searched_and_paged(browser, simstore, folder, screenshot):
    documents = []
    for number in range(2100):
        documents += [(f"page {number} copy {copy}", words(20, 20 * number)) for copy in range(2 + (number == 7))]
    browser.get(report(simstore, folder, documents))
    assert text(browser, "#cluster-text").startswith("2,100 clusters.")
    assert len(browser.find_elements(By.CSS_SELECTOR, "#clusters > li")) == 50
    assert text(browser, "#clusters > li").startswith("3 documents")
    assert text(browser, "#pages span") == "page 1 of 42"
    browser.find_element(By.XPATH, "//nav/button[text()='Last']").click()
    assert text(browser, "#pages span") == "page 42 of 42"
    search = browser.find_element(By.ID, "search")
    search.send_keys("page 1234 COPY 1")
    assert texts(browser, "#clusters > li") == ["2 documents down to 1 page 1234 copy 0"]
    # The keyboard alone opens a cluster and a comparison.
    search.send_keys(Keys.TAB, Keys.TAB)
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    wait_filled(browser, browser.switch_to.active_element)
    browser.switch_to.active_element.send_keys(Keys.TAB)
    assert "page 1234 copy 1" in text(browser, ".cluster > div")
    search.clear()
    search.send_keys("no such page")
    assert texts(browser, "#clusters > li") == []
    assert text(browser, "#cluster-found").startswith("0 clusters")
    screenshot("report-search")


def test_distances_without_texts(browser, simstore, folder, screenshot):
    path, page = folder / "f.hex", folder / "distances.html"
    numbers = [(0x0123456789ABCDEF * step) % 2**64 for step in range(1, 60)]
    lines = [f"{number:016x}\tf{at}" for at, number in enumerate(numbers)]
    lines += [f"{number ^ (1 << at % 64):016x}\tcopy{at}" for at, number in enumerate(numbers[:30])]
    path.write_text("\n".join(lines) + "\n")
    simstore("dedup", path, "--report", page, "--quiet", "--distance", "3")
    browser.get(page.as_uri())
    assert text(browser, "#histogram-title") == "Distances"
    slider = browser.find_element(By.ID, "threshold")
    slider.send_keys(Keys.HOME)
    assert text(browser, "#threshold-text").startswith("At 0 bits: 30 of the 30 removed documents")
    open_details(browser, "#clusters > li:first-child .cluster > summary")
    assert text(browser, ".plain .score") == "1 bit"
    screenshot("report-distances")


def test_a_report_without_duplicates(browser, simstore, folder):
    browser.get(report(simstore, folder, [("a", words(30)), ("b", words(30, 500))]))
    assert text(browser, "#cluster-text") == "0 clusters."
    assert browser.find_element(By.ID, "pages").is_displayed() is False
