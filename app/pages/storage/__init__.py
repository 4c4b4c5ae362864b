"""Storage: What storage does a job need, and who waits?"""

from app.menu import Page
from simulators.storage.terms import TERMS

STORAGE_PAGE = Page(
    name="storage",
    title="Storage",
    icon=":material/hard_drive:",
    asks="What storage does a job need, and who waits for input?",
    file="pages/storage/page.py",
    in_menu=True,
    terms=TERMS,
)
