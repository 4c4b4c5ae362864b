"""x"""

from tests.app.test_pages import opened, words


def test_the_page(place):
    page = opened("pages/storage/page.py")
    assert not page.exception, page.exception
    print(words(page))
