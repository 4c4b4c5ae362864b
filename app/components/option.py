"""The control of an option: which widget its kind asks for, what may be entered, and its place in the address."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st

from app.components.current import choose, chosen
from app.words import sentence
from errors import QuestionError
from errors.numbers import Number
from errors.options import Option

UNSET = ""  # the value of a list in which nothing is chosen
_MOST = float((1 << 53) - 1)  # beyond it a browser's numbers are no whole ones


def said(option: Option, default: Any = None, name: str = "") -> Any:
    """What the address says of it; `default` where it says nothing, or what cannot be."""
    text = st.query_params.get(name or option.name, "").strip()
    try:
        return option.parse(text) if text else default
    except QuestionError:
        return default


def by_name(options: Iterable[Option]) -> dict[str, Option]:
    return {o.name: o for o in options}


def in_address(options: Iterable[Option]) -> dict[str, Any]:
    """Every value that the address gives. Raises QuestionError, by the words on the page, for one that cannot be."""
    texts = ((o, st.query_params.get(o.name, "").strip()) for o in options)
    return {o.name: o.parse(text, f"{o.title}: ") for o, text in texts if text}


def field(
    option: Option,
    now: Any = None,
    empty: str = "",
    lines: bool = False,
    *,
    words: Sequence[str] = (),
    key: str | None = None,
    disabled: bool = False,
) -> str:
    """A field of a form, of `lines` or of one: what was entered, as text. It is checked once the form is sent.

    A list for an option of some words, or of those in `words`. `key`: of its state, which then holds the value.
    """
    told: dict[str, Any] = {"help": f"{sentence(option.help)}.", "key": key, "disabled": disabled}
    if words := words or (option.kind if isinstance(option.kind, tuple) else ()):
        return st.selectbox(option.title, words, index=words.index(now) if now in words else 0, **told)
    told["placeholder"] = empty or None
    text = "" if now is None else _written(now)
    if lines:
        return st.text_area(option.title, text, height=68, **told).strip()
    return st.text_input(option.title, text, **told).strip()


def control(
    option: Option,
    default: Any = None,
    *,
    texts: Mapping[str, str] | None = None,
    unset: str | None = None,
    buttons: bool = False,
    label: str = "",
    more: str = "",
    empty: str = "",
    step: float | None = None,
    name: str = "",
    key: str = "",
    hidden: bool = False,
    width: int | Literal["", "stretch", "content"] = "",
    icon: str | None = None,
    always: bool = False,
    entered: Callable[[Any], None] = lambda value: None,
) -> Any:
    """Draws it and returns its value: the one in the address, else `default`, which is left out there.

    A list for an option of some words, or where `texts` say which values are offered (value in the address: text in
    the list; None: its words), as `buttons` in a row if wished, with `unset` at its head for none (None: there is
    none). Else a toggle, a field for a number within its bounds, or one for text; `empty` stands in a field without a
    value.
    `icon`: in a field for text. `always`: a number that cannot be taken away, only be another. `label`: in place of the
    option's; `more`: after its help; `name`: in the address, where that is not the option's; `key`: of its state, which
    tells two controls of one option on a page apart; `entered`: called with a value that was entered, once the address
    holds it.
    """
    told = {"help": f"{sentence(option.help)}.{more}", "width": width or ("content" if buttons else "stretch")}
    told["label_visibility"] = "collapsed" if hidden or buttons else "visible"
    called = name or option.name
    drawn = _Control(option, default, label or option.title, called, key or f"pick_{called}", empty, told, entered)
    if option.switch:
        return drawn.switch()
    if texts is not None or isinstance(option.kind, tuple):
        words = {w: w for w in option.kind} if isinstance(option.kind, tuple) else {}
        return drawn.list(words if texts is None else texts, unset, buttons)
    return drawn.number(option.kind, step, always) if isinstance(option.kind, Number) else drawn.text(icon)


def choices(
    option: Option,
    texts: Mapping[str, str],
    now: Sequence[str],
    chose: Callable[[list[str]], None],
    *,
    key: str,
    label: str = "",
    buttons: bool = False,
    most: int | None = None,
    new: bool = False,
    empty: str = "",
    width: int | Literal["stretch"] = "stretch",
    hidden: bool = False,
) -> None:
    """Draws what may be chosen more than once: a list with those chosen in it, or a row of buttons.

    `texts`: as of `control`; without any there is nothing to choose. `now`: what is chosen; `chose` is called with what
    is from then on. `most`: so many at once; `new`: others than those offered may be written, too.
    """
    how: dict[str, Any] = {
        "key": _holding(key, list(now)),
        "format_func": lambda value: texts.get(value, value),
        "on_change": lambda: chose(list(st.session_state[key])),
        "help": None if hidden else f"{sentence(option.help)}.",
        "label_visibility": "collapsed" if hidden else "visible",
    }
    if buttons:
        st.pills(label or option.title, list(texts), selection_mode="multi", disabled=not texts, **how)
        return
    more = {"max_selections": most, "accept_new_options": new, "placeholder": empty or None, "width": width}
    st.multiselect(label or option.title, list(texts), **more, **how)


def amount(
    option: Option,
    now: float | None,
    *,
    key: str,
    label: str = "",
    more: str = "",
    empty: str = "",
    step: float | None = None,
    always: bool = False,
    disabled: bool = False,
    changed: Callable[[], None] | None = None,
) -> float | None:
    """A field for a number whose place is not the address: within the option's bounds, as `control` has it.

    `now`: what stands in it at first; `key`: of its state, which then holds the value.
    """
    told: dict[str, Any] = {"help": f"{sentence(option.help)}.{more}", "disabled": disabled, "on_change": changed}
    st.session_state.setdefault(key, now)
    return _number_input(label or option.title, option.kind, key, step, always, empty, told)


@dataclass(frozen=True)
class _Control:
    """As `control` has it; `told`: what every widget is told."""

    option: Option
    default: Any
    label: str
    name: str
    key: str
    empty: str
    told: dict[str, Any]
    entered: Callable[[Any], None]

    def list(self, words: Mapping[str, str], unset: str | None, buttons: bool) -> Any:
        otherwise = UNSET if self.default is None else _written(self.default)
        offered = ({} if unset is None else {UNSET: unset}) | dict(words)
        if otherwise not in (UNSET, *offered):
            offered[otherwise] = otherwise
        now = chosen(self.name, list(offered), otherwise)
        key = _holding(self.key, now)

        def changed() -> None:
            value = st.session_state[key]
            value = otherwise if value is None else value
            choose(self.name, value, otherwise)
            self.entered(None if value == UNSET else value)

        how = {"format_func": offered.__getitem__, "key": key, "on_change": changed, **self.told}
        if buttons:
            st.segmented_control(self.label, list(offered), required=True, **how)
        else:
            st.selectbox(self.label, list(offered), **how)
        return None if now == UNSET else self.option.parse(now)

    def switch(self) -> bool:
        on = bool(said(self.option, self.default, self.name))
        key = _holding(self.key, on)

        def changed() -> None:
            value = bool(st.session_state[key])
            choose(self.name, _written(value), _written(bool(self.default)))
            self.entered(value)

        st.toggle(self.label, key=key, on_change=changed, **self.told)
        return on

    def number(self, kind: Number, step: float | None, always: bool) -> Any:
        of = int if kind.whole else float
        now = said(self.option, self.default, self.name)
        now = None if now is None or abs(now) > _MOST else of(now)
        key = _holding(self.key, now)

        def changed() -> None:
            value = st.session_state[key]
            fits = value is not None and kind.low <= value <= kind.high and not (kind.above and value == kind.low)
            choose(self.name, _written(value) if fits else "", "" if self.default is None else _written(self.default))
            self.entered(value if fits else None)

        _number_input(self.label, kind, key, step, always, self.empty, {"on_change": changed, **self.told})
        return now

    def text(self, icon: str | None) -> str:
        now = st.query_params.get(self.name, "").strip()
        key = _holding(self.key, now)

        def changed() -> None:
            value = st.session_state[key].strip()
            choose(self.name, value)
            self.entered(value or None)

        st.text_input(self.label, key=key, placeholder=self.empty or None, icon=icon, on_change=changed, **self.told)
        return now


def _number_input(
    label: str, kind: Any, key: str, step: float | None, always: bool, empty: str, told: dict[str, Any]
) -> float | None:
    of = int if kind.whole else float
    return st.number_input(
        label,
        of(max(kind.low, -_MOST)),
        of(min(kind.high, _MOST)),
        value="min" if always else None,
        step=None if step is None else of(step),
        format=None if kind.whole else "%.6g",
        placeholder=empty or None,
        key=key,
        **told,
    )


def shown(name: str, now: Any) -> str:
    """The key of a control that shows `now`: the address may have changed by other ways than this control."""
    return _holding(f"pick_{name}", now)


def _holding(key: str, now: Any) -> str:
    if st.session_state.get(key) != now:
        st.session_state[key] = now
    return key


def _written(value: Any) -> str:
    """As it stands in an address."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.12g}" if isinstance(value, float) else str(value)
