"""Facts: What is known of this run, and what would be told with one fact more?"""

from app.menu import Page

FACTS = Page(
    name="facts",
    title="Facts",
    icon=":material/fact_check:",
    asks="What is known of this run, and what would be told with one fact more?",
    file="pages/facts/page.py",
    about={"job": (), "serving": (), "compiled": ()},
)
