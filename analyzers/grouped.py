"""The rows of a frame by the values of some of its columns, looked up: to go through all devices of a thousand hosts is
not to go through all rows for each of them."""

from typing import Any

import numpy as np
import pandas as pd


class Grouped:
    """The rows by the values of `columns`, which are text or whole numbers; rows that lack one belong nowhere."""

    def __init__(self, rows: pd.DataFrame, *columns: str):
        self._rows = rows
        places = rows.groupby(list(columns), sort=False, observed=True).indices
        self._places = {_key(key): where for key, where in places.items()}

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        """The values that there are rows of."""
        return list(self._places)

    def of(self, *values: Any) -> pd.DataFrame:
        """The rows with these values, in their order."""
        return self._rows.iloc[self._places.get(_key(values), np.zeros(0, np.int64))]


def _key(values: Any) -> tuple[Any, ...]:
    values = values if isinstance(values, tuple) else (values,)
    return tuple(value if isinstance(value, str) else int(value) for value in values)
