"""People: Who may do what here, and who did what?"""

from app.menu import Page

PEOPLE = Page(
    name="people",
    title="People and tokens",
    icon=":material/group:",
    asks="Who may do what here, and who did what?",
    file="pages/people/page.py",
)
