"""Which model a question is about, on which chip, at which sequence length: from the run's facts or from options."""

from analyzers.base import Facts, fact
from catalog.chip_count import devices_of_a_chip
from catalog.chips import Chip, chip
from catalog.models import Model, model, parameters
from errors import QuestionError
from errors.numbers import COUNT
from errors.options import Option

MODEL = Option("model", str, None, "a model of the catalogue; default: the one the run names")
CHIP = Option("chip", str, None, "a chip of the catalogue, by any usual name; default: the one the run names")
SEQ = Option("seq", COUNT, None, "tokens in a sequence; default: what the run says", "tokens", "Sequence")
SEQUENCE_FACTS = ("seq", "sequence_length", "max_target_length")  # ours, and as frameworks print it


def model_of(facts: Facts) -> Model | None:
    """The model that the facts name, or whose dimensions they hold; None where they say nothing of it.

    Raises QuestionError for a name that the catalogue does not have and for dimensions that cannot be.
    """
    said = fact(facts, "model")
    if said is None:
        return None
    if isinstance(said, dict):
        from catalog.configs import from_config

        return from_config(said)
    return model(str(said))


def known_model(facts: Facts, notes: list[str], advice: str = "ask with --option model=NAME") -> Model | None:
    """The model that the run or an option names; None, and a note, where the run's name is in no catalogue: a run says
    no less for having a model of the user's own naming than for naming none.

    Raises QuestionError for a name that was asked about and is none.
    """
    try:
        return model_of(facts)
    except QuestionError as e:
        if facts["model"].source in ("option", "the question"):
            raise
        notes.append(f"The run's model is not known here ({e.what}): {advice}.")
        return None


def need_model(facts: Facts) -> Model:
    """The model. Raises QuestionError where the facts do not tell."""
    found = model_of(facts)
    if found is None:
        raise QuestionError(
            "nothing says which model this is",
            advice="Ask with --option model=NAME, or ingest with --model NAME or its dimensions in chipledger.json.",
        )
    return found


def parameters_of(facts: Facts) -> float | None:
    """Parameters of the whole model: as the facts count them, else by the model's dimensions; None where not known."""
    said = fact(facts, "parameters")
    if isinstance(said, int | float) and said > 0:
        return float(said)
    try:
        found = model_of(facts)
    except QuestionError:
        return None
    return float(parameters(found).total) if found else None


def chip_of(facts: Facts) -> Chip | None:
    """The chip of the catalogue that the facts name; None where they name none or one that it does not have."""
    said = fact(facts, "chip")
    try:
        return chip(str(said)) if said else None
    except QuestionError:
        return None  # a chip of the user's own naming: only declared numbers hold for it


def sequence_of(facts: Facts) -> int | None:
    """Tokens in a sequence. Raises QuestionError for a length below 1."""
    said = next((fact(facts, name) for name in SEQUENCE_FACTS if fact(facts, name) is not None), None)
    if said is None:
        return None
    if not isinstance(said, int | float) or not 1 <= said < 1 << 31 or int(said) != said:
        raise QuestionError(f"a sequence of {said} tokens", expected="a whole number from 1")
    return int(said)


def slices_of(facts: Facts) -> int | None:
    """Slices of the job, joined by the data-centre network: `slices`, or as MaxText prints it; None: not known."""
    said = next((fact(facts, name) for name in ("slices", "num_slices") if fact(facts, name) is not None), None)
    return int(said) if isinstance(said, int | float) and 1 <= said < 1 << 31 else None


def devices_per_chip(facts: Facts) -> int:
    """Devices that a framework makes of one chip: as the run says, else by the catalogue, else 1."""
    return devices_of_a_chip(fact(facts, "devices_per_chip"), chip_of(facts))
