"""How a link looks: a colour and a form for each kind, so that colour is never alone; and the ramp of link loads."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LinkLook:
    """`light`, `dark`: colour on a light and on a dark page; `width_px`: of the line; `dash`: solid, dashed, dotted."""

    light: str
    dark: str
    width_px: float
    dash: str = "solid"


LINKS: dict[str, LinkLook] = {
    "copper": LinkLook("#B4692B", "#C98A52", 1.1),
    "optical": LinkLook("#1B7FBF", "#7CCBFA", 1.9),
    "wrap": LinkLook("#7446B8", "#BBA0F5", 1.7),
    "twist": LinkLook("#C2185B", "#FF86BC", 2.1, "dashed"),
    "board": LinkLook("#8C6D00", "#E6C84F", 2.3),
    "ocs": LinkLook("#4A90C2", "#4F94C4", 1.0),
    "nvlink": LinkLook("#4B8400", "#93CF3F", 1.2),
    "direct": LinkLook("#4B8400", "#93CF3F", 1.6),
    "rail": LinkLook("#2A67AE", "#86B8F2", 1.6),
    "spine": LinkLook("#8E44AD", "#D3A3EC", 1.5, "dashed"),
    "core": LinkLook("#B03A2E", "#F2938A", 1.9, "dotted"),
    "given": LinkLook("#566372", "#A9B4C2", 1.2),
}
FAILED = LinkLook("#D1002C", "#FF5468", 1.7, "dashed")
CHOSEN = LinkLook("#111418", "#FFFFFF", 3.2)
CHIP = LinkLook("#55606E", "#B9C2CE", 0)
SWITCH = LinkLook("#C77700", "#FFB84D", 0)
HEAT: dict[str, tuple[str, ...]] = {
    "light": ("#C6D6E6", "#9EBCDA", "#8C96C6", "#8C6BB1", "#88419D", "#5A0158"),
    "dark": ("#3E3468", "#7A2A77", "#B63679", "#EE6A5B", "#FDB14A", "#FCFDBF"),
}
"""Least to greatest load; lightness changes in one direction only, away from the page's own."""
