"""Prefix cache: What would a larger prefix cache find?"""

from analyzers.serving import prefix_cache as analyzer
from analyzers.serving.prefix_cache.terms import TERMS
from app.questions.base import Question
from app.questions.prefix_cache import words

PREFIX_CACHE = Question(
    name="prefix_cache",
    title="Prefix cache",
    icon=":material/library_books:",
    asks="What would a larger prefix cache find?",
    aliases=("prefix", "prefix-cache"),
    file="questions/prefix_cache/page.py",
    about={"serving": ("requests", "engine")},
    inputs=("requests", "engine"),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
