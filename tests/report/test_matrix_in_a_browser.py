"""The page about many releases, as people have it before them: in Chromium, which a driver clicks through."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from driftcheck.report.matrix_page import render_matrix_page
from tests.test_matrix import CLIENT, found


@contextmanager
def browser() -> Iterator[webdriver.Chrome]:
    """Chromium, without a window."""
    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.mark.browser
def test_the_page_in_a_browser(tmp_path: Path) -> None:
    client = CLIENT.replace("size=1", 'size="<script>document.title = 1</script>"')
    page = tmp_path / "matrix.html"
    explanations = {"unresolved-attribute": "an attribute\n  that is not there"}
    matrices = [found("1", "2", "3", "4", "5", "6", client=client), found("2", "3")]
    page.write_text(render_matrix_page(matrices, explanations))
    with browser() as driver:
        driver.get(page.as_uri())
        assert driver.title == "app 1.0, app 1.0 and the releases of vllm"
        table = driver.find_elements(By.TAG_NAME, "table")[1]

        def column(number: int) -> list[str]:
            return [cell.text for cell in table.find_elements(By.CSS_SELECTOR, f"tbody td:nth-child({number})")]

        assert column(1) == ["1", "2 to 3", "4", "5", "6"]
        by_release, by_breaks, _ = table.find_elements(By.CSS_SELECTOR, "th button")
        by_breaks.click()
        assert column(2) == ["fits", "fits", "1 error", "1 error", "2 errors"]
        by_breaks.click()
        assert column(2)[0] == "2 errors"
        by_release.click()
        assert column(1) == ["1", "2 to 3", "4", "5", "6"]
        table.find_element(By.TAG_NAME, "summary").click()
        link = table.find_element(By.CSS_SELECTOR, "li a")
        assert link.text == "app.py:4"
        link.click()
        shown = [section for section in driver.find_elements(By.TAG_NAME, "section") if section.is_displayed()]
        assert [section.find_element(By.TAG_NAME, "h2").text for section in shown] == [
            "module vllm has no attribute stop"
        ]
        assert not table.is_displayed()
        shown[0].find_element(By.LINK_TEXT, "unresolved-attribute").click()
        meaning = driver.find_element(By.ID, "about-unresolved-attribute")
        assert meaning.find_element(By.TAG_NAME, "pre").text == "an attribute\n  that is not there"
        assert not shown[0].is_displayed()
        driver.back()
        shown[0].find_element(By.LINK_TEXT, "all releases").click()
        assert table.is_displayed()
        assert not shown[0].is_displayed()
        said = driver.get_log("browser")  # type: ignore[no-untyped-call]
        assert not [entry for entry in said if entry["level"] == "SEVERE"]
