"""KV cache: How many sequences fit, and what takes the memory?"""

from analyzers.serving import kv_cache as analyzer
from analyzers.serving.kv_cache.terms import TERMS
from app.questions.base import Question
from app.questions.kv_cache import words

KV_CACHE = Question(
    name="kv_cache",
    title="KV cache",
    icon=":material/view_module:",
    asks="How many sequences fit, and what takes the memory?",
    aliases=("kv", "kv-cache"),
    file="questions/kv_cache/page.py",
    key="k",
    about={"serving": ()},
    inputs=("engine", "memory"),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
