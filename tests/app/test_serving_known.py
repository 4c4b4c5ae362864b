"""The customer's case: cheap cards against a dear one, held to what was measured."""

from dataclasses import replace

import pytest

from app.whatif.serving.known import BreakEven
from app.whatif.serving_plan import SERVING_PLAN
from app.whatif.serving_plan.answers import find
from app.whatif.serving_plan.asked import Asked
from app.whatif.serving_plan.wording import tipping, verdict
from tests.app.commands import asked_by

ASKED = [
    "--model",
    "gpt-oss-120b",
    "--on",
    "RTX PRO 6000 Server,b200",
    "--input",
    "10000",
    "--prefix",
    "1500",
    "--output",
    "200",
    "--rate",
    "20",
]


def asked(*more: str) -> dict:
    """The JSON, and under `whole` all that is said of it: its verdict is the first two lines of that."""
    made = SERVING_PLAN.answer(asked_by(SERVING_PLAN, *ASKED, *more), None)
    told, said = SERVING_PLAN.told(made), verdict(made)
    assert told["verdict"] == said and said.whole.startswith(said)
    return told | {"whole": said.whole}


def test_the_cheap_cards_win_and_the_price_tips_where_it_was_measured():
    told = asked("--price", "RTX PRO 6000 Server=1.8,b200=6")
    assert told["choices"][0]["chip"] == "RTX PRO 6000 Server" and told["ranked_by"] == "usd_per_hour"
    assert told["verdict"].count("RTX PRO 6000 Server") >= 1
    assert "keeps up with the rate" in told["whole"] and "give one with --ttft-s" in told["verdict"]
    measured, found = 701.38 / (902.72 / 2), told["break_even"]
    dear = next(c for c in told["choices"] if c["chip"] == "B200")
    assert found["full_load_times"] == pytest.approx(measured, rel=1e-6) and found["full_load_basis"] == "measured"
    assert found["times"] == told["choices"][0]["chips"] / dear["chips"] == pytest.approx(measured, rel=0.25)
    assert found["usd_per_chip_hour"] == pytest.approx(1.8 * found["times"], rel=1e-6)
    for chip, chips, tokens, rate in (("RTX PRO 6000 Server", 2, 902.72, 2.01), ("B200", 1, 701.38, 1.56)):
        one = next(c for c in told["choices"] if (c["chip"], c["tensor"], c["expert"]) == (chip, chips, 1))
        low, high = one["band"]["output_tokens_per_s"]
        assert low < tokens < high and one["band"]["measured"]["output_tokens_per_s"] == tokens
        low, high = one["band"]["requests_per_s"]
        assert low < rate < high and one["rate_per_replica"] == pytest.approx(rate, rel=0.25)


def test_without_prices_kinds_are_not_compared():
    told = asked()
    assert told["ranked_by"].startswith("nothing") and told["break_even"]["usd_per_chip_hour"] is None
    assert "takes prices" in told["whole"] and told["break_even"]["chip"] == "RTX PRO 6000 Server"
    assert told["break_even"]["full_load_times"] == pytest.approx(902.72 / 2 / 701.38, rel=1e-6)
    assert set(told["unpriced_chips"]) == {"RTX PRO 6000 Server", "B200"}


def test_two_cards_hold_the_weights_and_the_stand_in_is_named():
    told = asked("--price", "RTX PRO 6000 Server=1.8,b200=6")
    assert "RTX PRO 6000 Workstation" in told["whole"]
    assert all(c["stand_ins"] for c in told["choices"] if c["chip"] == "RTX PRO 6000 Server")


def test_a_chip_of_ones_own_from_a_file(tmp_path):
    path = tmp_path / "card.json"
    path.write_text('{"name": "Card X", "like": "B200", "hbm_bytes_per_s": 4e12, "usd_per_chip_hour": 2}')
    told = asked("--price", "RTX PRO 6000 Server=1.8,b200=6", "--chip-file", str(path))
    own = next(c for c in told["choices"] if c["chip"] == "Card X")
    assert own["feasible"] and own["usd_per_hour"] == own["chips"] * 2
    assert any("Card X: Numbers are those of" in n for n in told["notes"])


def test_bands_that_reach_nothing_are_said_to_and_no_number_is_made_of_them():
    found = BreakEven("H100", "B200", 0.33, 0.0, None, 0.33, False, 6.0, None)
    assert found.to_dict()["times_high"] is found.to_dict()["usd_per_chip_hour_high"] is None
    assert tipping(found).endswith(
        "(modelled; at the slowest efficiencies assumed H100 and B200 cannot serve it, so this may be far off)."
    )
    assert "0.2 to 0.5 times over the bands" in tipping(replace(found, low=0.2, high=0.5))


def two_kinds(rate: float, h100_usd: float):
    """The plan of a model that one chip of either kind holds, and its break-even price."""
    asked = Asked(
        model="llama3.1-8b",
        on="h100,v6e",
        price=f"v6e=2.7,h100={h100_usd}",
        formats="bf16",
        input=1000,
        output=200,
        rate=rate,
        ttft_s=1.0,
        tpot_s=0.05,
    )
    made = find(asked)
    return made.plan.best, made.break_evens[0]


@pytest.mark.parametrize("rate", [2, 137])
def test_asked_again_below_the_break_even_price_it_tips(rate):
    best, found = two_kinds(rate, 8.0)
    assert (best.setup.chip.name, found.chip) == ("TPU v6e", "H100 SXM")
    low, high = found.low, found.high
    assert low <= found.times and (high is None or found.times <= high)
    assert two_kinds(rate, found.usd * 0.99)[0].setup.chip.name == "H100 SXM"
    assert two_kinds(rate, found.usd * 1.01)[0].setup.chip.name == "TPU v6e"


def test_full_load_is_told_apart_from_the_rate_asked_for():
    """One chip of either kind idles at two requests a second; many are used to the full."""
    few, many = two_kinds(2, 8.0)[1], two_kinds(1000, 8.0)[1]
    assert few.times == 1 < 1.5 < few.full_load_times and "to the full below" in tipping(few)
    assert many.times == pytest.approx(many.full_load_times, rel=0.05) and "to the full" not in tipping(many)
