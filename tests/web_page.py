"""Headless Chromium for tests of HTML pages."""

import shutil

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
HOSTILE = '<script>document.title = "owned"</script><img src=x onerror=\'document.title="owned"\'>'


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless Chromium; skips the test if Chromium or Selenium is not installed."""
    if BROWSER is None or DRIVER is None:
        pytest.skip("chromium and chromedriver are not installed")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (
        "headless",
        "no-sandbox",
        "disable-gpu",
        "disable-quic",
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
        "disable-dev-shm-usage",
        "window-size=1200,900",
        f"user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


def find(browser, selector):
    """Finds all elements that match a CSS selector."""
    return browser.find_elements("css selector", selector)


def page_errors(browser):
    """Returns the errors in the browser's console log."""
    return [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
