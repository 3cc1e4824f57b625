"""Fixtures for tests of pages in a real Chromium: the system's `chromium` and `chromedriver`."""

import os
import pathlib
import shutil
import subprocess

import pytest
from selenium import webdriver

ROOT = pathlib.Path(__file__).parents[3]
# Screenshots to look at. Each run replaces them.
SCREENSHOTS = ROOT / "target" / "screenshots"


@pytest.fixture(scope="session")
def simstore():
    """Returns a function that runs the command line, and fails if it fails."""
    program = os.environ.get("SIMSTORE", ROOT / "target" / "debug" / "simstore")

    def run(*arguments):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run.program = program
    return run


@pytest.fixture(scope="session")
def browser_process():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,1000"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture
def browser(browser_process):
    """A browser. At the end of the test, its console must be free of errors and warnings."""
    browser_process.get_log("browser")
    browser_process.set_window_size(1280, 1000)
    browser_process.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    yield browser_process
    assert browser_process.get_log("browser") == []


@pytest.fixture
def screenshot(browser):
    """Returns a function that takes a screenshot of the whole page, to look at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)

    def take(name):
        width = browser.execute_script("return window.innerWidth")
        height = browser.execute_script("return document.documentElement.scrollHeight")
        browser.set_window_size(width, min(height + 150, 4000))
        browser.save_screenshot(SCREENSHOTS / f"{name}.png")

    return take
