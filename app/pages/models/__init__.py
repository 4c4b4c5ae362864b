"""Models: How large are they, and which fit a matrix unit badly?"""

from app.menu import Page

MODELS = Page(
    name="models",
    title="Models",
    icon=":material/schema:",
    asks="How large are they, and which fit a matrix unit badly?",
    file="pages/models/page.py",
    in_menu=True,
)
