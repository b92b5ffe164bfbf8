"""The playground: on the site and in a zip."""

import zipfile

from project.book import ROOT
from project.test_site import pages

FOLDER = ROOT / "site" / "playground"


def test_the_site_carries_the_playground_and_a_zip_that_opens_alone(tmp_path):
    pages.carry_playground(tmp_path)
    names = {f"playground/{path.name}" for path in FOLDER.iterdir()}
    with zipfile.ZipFile(tmp_path / "playground/playground.zip") as packed:
        assert {name for name in packed.namelist() if not name.endswith("/")} == names
    assert all((tmp_path / name).is_file() for name in names)
    for page in FOLDER.glob("*.html"):
        assert '<html lang="en">' in page.read_text("utf-8")  # in it `.book` is not shown
        assert 'class="site"' in (tmp_path / "playground" / page.name).read_text("utf-8")


def test_a_link_of_the_book_to_a_preset_leads_to_the_playground_of_the_site():
    link = pages.new_link(
        "[See](", "../site/playground/index.html#preset=gap", "derivations/p.md", "tags/k.md"
    )
    assert link.endswith("(src:../playground/index#preset=gap)")
