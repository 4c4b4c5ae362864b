"""Alerts: what is watched for, what is open, and what was told."""

from collections.abc import Mapping

import streamlit as st

from app.components.columns import draw_table
from app.components.current import open_workspace
from app.components.held import held
from app.components.notice import notice
from app.components.option import field
from app.components.text import md
from app.components.verdict import verdict
from app.follow.alerts.evaluate import alerts_told, book, watch_for
from app.follow.alerts.rules import RULES, page_of
from app.follow.alerts.webhook import masked
from app.questions import question
from errors import QuestionError
from errors import format as fmt
from runs.alert_book import Alert, AlertBook

SET_UP = """chipledger alerts --on goodput=0.9 --on straggler --on hang=10 \\
    --webhook https://hooks.slack.com/services/... --base-url http://your-host:8501
chipledger alerts --test"""


def page() -> None:
    st.set_page_config(page_title="Alerts · Chipledger")
    st.subheader("Alerts", anchor=False)
    place = open_workspace()
    kept = book(place)
    alerts, thresholds = alerts_told(place), kept.thresholds()
    verdict(sentence(alerts, thresholds))
    opened = [a for a in alerts if a.resolved_ns is None]
    for alert in opened:
        card(alert)
    rules(kept, thresholds)
    past = [a for a in alerts if a.resolved_ns is not None]
    if past:
        st.markdown("**What was resolved**, the latest first.")
        draw_table([_row(a) for a in past])


def sentence(alerts: list[Alert], thresholds: dict[str, float]) -> str:
    """The page's verdict."""
    opened = sum(a.resolved_ns is None for a in alerts)
    if opened:
        return f"{fmt.count(opened, 'alert')} {'is' if opened == 1 else 'are'} open."
    if not thresholds:
        return "Nothing is watched for yet."
    return f"No alert is open. {fmt.count(len(thresholds), 'rule is', 'rules are')} judged after every ingest."


def card(alert: Alert) -> None:
    """An open alert, with the page that shows why."""
    with st.container(border=True):
        st.markdown(f"**{md(alert.name)}**: {md(alert.sentence)}")
        told = "told" if alert.told_ns else "nobody was told yet"
        problem = f" · {md(alert.problem)}" if alert.problem else ""
        st.caption(f"since {fmt.date(alert.opened_ns)} · {told}{problem}")
        st.page_link(
            question(page_of(alert.rule)).file,
            label="Why",
            icon=":material/arrow_forward:",
            query_params={"run": alert.run_id},
        )


def rules(kept: AlertBook, thresholds: dict[str, float]) -> None:
    """What is watched for, and how that is set."""
    target = kept.target()
    st.markdown(
        "**What is watched for**: after every ingest, and after every snapshot of a run that "
        "`chipledger watch` follows."
    )
    draw_table(
        [
            {
                "rule": r.name,
                "meaning": f"{r.title}: {r.help}",
                "threshold": f"{thresholds[r.name]:g}" if r.name in thresholds else "off",
            }
            for r in RULES
        ],
        hide_index=True,
    )
    if target:
        st.caption(f"Messages go to {md(masked(target.url))}, shaped for {target.shape}.")
    else:
        st.info("No webhook is set: alerts are shown here and told to nobody.", icon=":material/info:")
    with st.expander("Set rules and a webhook", expanded=not thresholds, icon=":material/tune:"):
        settings(kept, thresholds)
        st.markdown("A webhook's address is a secret: it is set on the command line, where rules can be set as well.")
        st.code(SET_UP, language="bash")


def settings(kept: AlertBook, thresholds: dict[str, float]) -> None:
    """A field for the threshold of each rule."""
    st.caption("A rule whose field is empty is off.")
    texts: dict[str, str] = {}
    with st.form("rules", border=False):
        for rule, column in zip(RULES, st.columns(len(RULES), vertical_alignment="bottom"), strict=True):
            with column:
                texts[rule.name] = field(rule.option, thresholds.get(rule.name), f"off; usually {rule.usual:g}")
        if not st.form_submit_button("Watch for these", type="primary", icon=":material/notifications:", **held()):
            return
    try:
        changes = changed(texts, thresholds)
    except QuestionError as e:
        notice(e, library=False)
        return
    try:
        problems = watch_for(kept, changes)
    except QuestionError as e:
        notice(e, library=False)
        return
    for problem in problems:
        st.warning(md(problem), icon=":material/warning:")
    if not problems:
        st.rerun()


def changed(texts: Mapping[str, str], thresholds: Mapping[str, float]) -> dict[str, float | None]:
    """What is entered and not so yet; None: no longer watched for. Raises QuestionError for what is no threshold."""
    said = {r.name: r.option.parse(texts[r.name], f"{r.title}: ") if texts[r.name] else None for r in RULES}
    return {name: threshold for name, threshold in said.items() if threshold != thresholds.get(name)}


def _row(alert: Alert) -> dict[str, str]:
    lasted = fmt.duration(((alert.resolved_ns or 0) - alert.opened_ns) / 1e9)
    return {
        "opened": fmt.date(alert.opened_ns),
        "lasted": lasted,
        "rule": alert.rule,
        "run": alert.name,
        "what": alert.sentence,
        "end": alert.resolved_sentence or "",
    }


if __name__ == "__main__":
    page()
