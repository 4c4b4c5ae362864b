"""Power: How much energy did a step and a token take, and were clocks held down?"""

from analyzers.device import power as analyzer
from analyzers.device.power.terms import TERMS
from app.questions.base import Question
from app.questions.power import words

POWER = Question(
    name="power",
    title="Power",
    icon=":material/electric_bolt:",
    asks="How much energy did a step and a token take, and did heat or a power limit hold chips down?",
    aliases=("energy",),
    file="questions/power/page.py",
    about={"job": ("scalars",), "serving": ("scalars",)},
    formats=("dcgm", "nvidia_smi", "prometheus", "prometheus_json", "wandb_log", "wandb_history", "mlflow", "nsys"),
    inputs=("scalars",),
    options=analyzer.OPTIONS,
    terms=TERMS,
    analyze=analyzer.analyze,
    verdict=words.verdict,
    table=words.table,
)
