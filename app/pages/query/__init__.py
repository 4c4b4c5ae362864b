"""Query: What do the tables of this run say?"""

from app.menu import Page

QUERY = Page(
    name="query",
    title="Query",
    icon=":material/database:",
    asks="What do the tables of this run say, in SQL?",
    file="pages/query/page.py",
    key="q",
    about={"job": (), "serving": (), "compiled": ()},
)
