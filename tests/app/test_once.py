"""Figures that are drawn once for all who look at the same answer."""

import gc

import plotly.graph_objects as go
import streamlit as st

from app.figures.once import MOST, drawn_once


class Answer:
    def __init__(self, y):
        self.y = y


def counting():
    drawn = []

    @drawn_once
    def line(result: Answer, scale: str = "linear") -> go.Figure:
        drawn.append((result.y, scale))
        return go.Figure(go.Scatter(y=[result.y]), layout={"yaxis": {"type": scale}})

    return line, drawn


def test_the_same_answer_has_the_same_figure_and_another_another():
    line, drawn = counting()
    one, other = Answer(1), Answer(1)
    assert (
        line(one) is line(one) and line(one, "log") is line(one, "log") and line(one, scale="log") == line(one, "log")
    )
    assert line(other) is not line(one)
    assert len(drawn) == 4  # the third is asked by name, the fourth of another answer


def test_a_figure_goes_with_its_answer_and_the_oldest_before_there_are_too_many():
    line, drawn = counting()
    for n in range(10):
        line(Answer(n))
    gc.collect()
    last = Answer(99)
    assert line(last).data[0].y == (99,) and len(drawn) == 11
    kept = [Answer(n) for n in range(MOST + 1)]
    for one in kept:
        line(one)
    line(kept[-1]), line(last)
    assert len(drawn) == 11 + MOST + 1 + 1


def test_what_is_drawn_on_a_page_leaves_the_kept_figure_as_it_was(monkeypatch):
    from app.components.chart import chart

    line, _ = counting()
    figure = line(one := Answer(1))
    before, shown = figure.to_json(), []
    monkeypatch.setattr(st, "plotly_chart", lambda drawn, **_: shown.append(drawn))
    chart(figure, "key", "name", "words")
    assert shown[0].to_dict()["layout"]["font"]["color"] and figure.to_json() == before and line(one) is figure
