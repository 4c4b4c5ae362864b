"""The best distance between saves, beside Lambert's function as scipy has it and a search by hand."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import lambertw

from catalog.save_interval import best_interval_s


@pytest.mark.parametrize("save", np.geomspace(5e-4, 60, 40).tolist())
def test_it_is_as_lamberts_function_has_it(save):
    assert best_interval_s(7 * save, 7.0) == pytest.approx(7 * (1 + lambertw(-math.exp(-1 - save)).real), rel=1e-9)


@pytest.mark.parametrize("save", [1e-12, 1e-6, 4e-4])
def test_of_short_saves_it_nears_the_root_of_twice_their_time(save):
    assert best_interval_s(save, 1.0) == pytest.approx(math.sqrt(2 * save) - 2 * save / 3, rel=1e-4)


@pytest.mark.parametrize(("save_s", "mttf_s"), [(30, 10_000), (300, 3600), (1.3, 2.5)])
def test_no_other_interval_keeps_more(save_s, mttf_s):
    lost = minimize_scalar(
        lambda tau: math.expm1((tau + save_s) / mttf_s) / tau, bounds=(1e-3 * mttf_s, 3 * mttf_s), method="bounded"
    )
    assert best_interval_s(save_s, mttf_s) == pytest.approx(float(lost.x), rel=1e-3)
