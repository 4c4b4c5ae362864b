"""Sentences where something is not known: what is told is told of what is known, and of nothing else."""

from analyzers.findings import FindingsResult
from app.questions.findings import words as findings_words
from runs.ledger import Account, Ledger
from tests.app import ledgers


def found(ledger: Ledger, **more) -> FindingsResult:
    """Nothing, of this ledger."""
    told = {"told_share": 1 - ledger.unknown / ledger.chip_seconds, "useful_share": None, "kept_share": None, **more}
    return FindingsResult(
        findings=(), beyond=0, joint=(), explained=(), ruled_out=(), not_told=(), ledger=ledger, floor=0.02, **told
    )


def held(*parts: Account, **more) -> Ledger:
    return Ledger(chips=1, account=Account.total("held", list(parts)), **more)


def test_what_nothing_tells_of_is_none_of_what_can_be_told():
    dark = ledgers.leaf("not_profiled", 43, "unattributed")
    kept = Account.total("productive", [ledgers.leaf("useful_maths", 35), dark])
    lost = Account.total("badput", [ledgers.leaf("program_startup", 14), ledgers.leaf("checkpoint_save", 8)])
    said = findings_words.verdict(found(held(kept, lost), useful_share=0.35))
    assert said == (
        "Nothing stands out: of the 57 % that can be told, 35 % is useful maths; the largest of the rest are "
        "14 % startup and compilation, 8 % checkpoint save."
    )
    served = held(ledgers.leaf("no_requests", 56), ledgers.leaf("unattributed", 44, "unattributed"))
    assert findings_words.verdict(found(served, serving=True)) == (
        "Nothing stands out: of the 56 % that can be told, the largest of the rest is 56 % no requests."
    )
