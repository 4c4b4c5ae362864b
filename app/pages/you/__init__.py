"""You: As whom are you known here, and what may you do?"""

from app.menu import Page

YOU = Page(
    name="you",
    title="You",
    icon=":material/person:",
    asks="As whom are you known here, and what may you do?",
    file="pages/you/page.py",
)
