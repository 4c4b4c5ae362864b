"""The list of settings: each is documented, costs with some value and not with none, and draws on known accounts."""

import pytest

from catalog.settings import ARGUMENT, BY_NAME, FLAG, HIDDEN, HOLDERS, SETTINGS, VARIABLE, Share, kept
from runs.accounts import ACCOUNTS

COSTLY = ("1", "0", "True", "true", "TRACE", "DETAIL", "LOC", ":16:8", "highest", HIDDEN)
USUAL = ("", "INFO", "WARN", "SYS", ":4096:8", "default")


def test_each_setting_stands_once_and_says_where_it_is_documented():
    assert len(BY_NAME) == len(SETTINGS) >= 15
    for setting in SETTINGS:
        assert setting.kind in (VARIABLE, FLAG, ARGUMENT)
        assert setting.source.startswith("https://")
        assert setting.name not in HOLDERS
        assert set(setting.accounts) <= set(ACCOUNTS)
        assert not any(name.startswith("idle_") for name in setting.accounts), "device_idle holds these"
        assert not setting.shown or setting.accounts, "what is told only where accounts hold much names them"
        assert setting.says[-1] not in ".!" and setting.says == setting.says.strip()


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.name)
def test_it_costs_with_some_value_and_not_where_it_is_not_set(setting):
    assert any(setting.costly(value) for value in COSTLY)
    assert not setting.costly("")
    if setting.costs != ".+":
        assert not any(setting.costly(value) for value in USUAL)
        assert setting.name == "PYTHONTRACEMALLOC" or not setting.costly("10")


def test_it_is_written_as_a_person_would():
    assert BY_NAME["xla_backend_optimization_level"].written("0") == "--xla_backend_optimization_level=0"
    assert BY_NAME["enforce_eager"].written("True") == "--enforce-eager"
    assert BY_NAME["NCCL_DEBUG"].written("TRACE") == "NCCL_DEBUG=TRACE"


@pytest.mark.parametrize("value", ["0", "TRACE", ":16:8", "float32", "", "BF16_BF16_F32_X9"])
def test_plain_words_are_kept(value):
    assert kept(value) == value


@pytest.mark.parametrize(
    "value", ["/home/me/dump", "s3://key:pass@b/x", "<b>1</b>", "a b", "x" * 25, "é", "a\nb", "'1'"]
)
def test_anything_else_is_hidden(value):
    assert kept(value) == HIDDEN


def test_a_share_out_of_order_is_refused():
    with pytest.raises(ValueError, match="out of order"):
        Share(0.5, 0.4, 0.9, "measured", "")
