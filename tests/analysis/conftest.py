"""What tests of pages share."""

from __future__ import annotations

import shutil

import pytest

from tests.conftest import require


@pytest.fixture(scope="module")
def browser():
    if shutil.which("chromium") is None:
        require("chromium", "there is no chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()
