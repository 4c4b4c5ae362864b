"""Chips of one's own from a small file."""

import json

import pytest

from catalog import chip
from catalog.own_chip import own_chips
from errors import ChipledgerError

CARD = {"name": "Card X", "bf16_flops_per_s": 4e14, "hbm_bytes": 96e9, "hbm_bytes_per_s": 1.6e12}


def test_what_a_file_says_and_what_another_chip_lends():
    (own,) = own_chips(json.dumps(CARD | {"usd_per_chip_hour": 1.2}))
    assert own.chip.value("hbm_bytes") == 96e9 and own.usd_per_chip_hour == 1.2
    assert own.chip.numbers["hbm_bytes"].mark == "declared" and own.chip.value("fp4_flops_per_s") is None
    like = {"name": "Card Y", "like": "RTX PRO 6000 WS", "hbm_bytes": 48e9}
    one, two = own_chips(json.dumps([like, CARD]))
    known = chip("RTX PRO 6000 Workstation")
    assert one.chip.value("fp4_flops_per_s") == known.value("fp4_flops_per_s") and one.chip.value("hbm_bytes") == 48e9
    assert one.chip.value("hbm_usable_bytes") is None and "Workstation" in one.chip.notes[0]
    assert two.chip.name == "Card X"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "no JSON"),
        ("[]", "0 chips"),
        ("[3]", "not an object"),
        (json.dumps(CARD | {"name": "B200"}), "catalogue has"),
        (json.dumps(CARD | {"flops": 1}), "nothing of a chip is called"),
        (json.dumps(CARD | {"name": "a,b"}), "name"),
        (json.dumps({"name": "Z"}), "no bf16_flops_per_s"),
        (json.dumps(CARD | {"hbm_bytes": -1}), "hbm_bytes"),
        (json.dumps(CARD | {"hbm_bytes": "much"}), "hbm_bytes"),
        (json.dumps(CARD | {"name": 3}), "name"),
        (json.dumps({"name": "Z", "like": "nothing such"}), "no chip is called"),
        ("[" * 5000, "no JSON"),
    ],
)
def test_what_is_no_chip_is_refused(text, says):
    with pytest.raises(ChipledgerError, match=says):
        own_chips(text)
