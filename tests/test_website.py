"""The website: its pages open from disk, load nothing from elsewhere, and their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tensorlens.lessons.bundled import lessons
from tensorlens.records.error_messages import entries
from tools.website.__main__ import build
from tools.website.layout import Site
from tools.website.links import broken_links, read
from tools.website.markdown_html import to_html

CODE = "saved-tensor-modified-inplace"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return build(tmp_path_factory.mktemp("site"), {"detach"}, {CODE})


def test_every_lesson_code_and_guide_has_a_page(site: Site) -> None:
    wanted = {"index.html", "reference.html", "docs/hardest.html", "docs/why.html", "errors/index.html"}
    wanted |= {f"lessons/{lesson.name}.html" for lesson in lessons()}
    wanted |= {f"errors/{entry.code}.html" for entry in entries()}
    assert wanted <= set(site.written)


def test_all_links_between_pages_work(site: Site) -> None:
    assert broken_links(site.folder) == []


def test_nothing_is_loaded_from_elsewhere(site: Site) -> None:
    for page in site.written:
        text = (site.folder / page).read_text()
        assert "<script" not in text
        loaded = re.findall(r'<(?:img|iframe|link)[^>]*(?:src|href)="([^"]+)"', text)
        assert not [link for link in loaded if re.match(r"[a-z]+:|//", link)], page


def test_a_page_of_the_manual_has_the_report_of_its_example(site: Site) -> None:
    text = (site.folder / f"errors/{CODE}.html").read_text()
    assert "`shown.mul_(100)` overwrote `gate`, which backward still needs" in text
    assert "example.py:6:1" in text
    assert text.index("What the lens says") < text.index('id="fixed"')
    assert 'href="../lessons/detach-write.html"><code>tensorlens run detach-write</code>' in text


def test_a_lesson_shows_its_claims_and_its_report(site: Site) -> None:
    text = (site.folder / "lessons/detach.html").read_text()
    assert 'src="detach.report.html"' in text
    assert (site.folder / "lessons/detach.report.html").stat().st_size > 20_000
    claims = re.findall(r"<tr><td>\d+</td><td><code>.+?</code></td><td>(.+?)</td>", text)
    assert claims
    assert set(claims) <= {"holds", "refuted"}


def test_the_reference_has_every_public_name(site: Site) -> None:
    _, anchors = read(site.folder / "reference.html")
    assert {"trace", "load", "Session", "Report", "Diagnostic", "Trace"} <= anchors


def test_a_link_out_of_the_website_and_a_broken_one(tmp_path: Path) -> None:
    text = "[a](../x.py) [b](y.md#z) <script>1</script>\n\n# Two\n\n# Two"
    body = to_html(text, "docs/p.html", {"y.md": "docs/y.html"}.get)
    assert '<p>a <a href="y.html#z">b</a> &lt;script&gt;1' in body
    assert 'id="two"' in body
    assert 'id="two-1"' in body
    made = Site(tmp_path)
    made.write("docs/p.html", "p", body)
    assert ("docs/p.html", "y.html#z") in broken_links(tmp_path)
