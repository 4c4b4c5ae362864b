"""The dashboard: its pages, in the order of the menu."""

import streamlit as st

from app.components.brand import ICON, LOGO
from app.components.by_itself import whole_page
from app.components.docs_link import docs_link
from app.components.keys import keys
from app.components.notice import noticed
from app.components.you_link import you_link
from app.groups import SECTIONS, section_of
from app.identity.asking import acting_as, who
from app.identity.open_to_all import warning
from app.pages.all import every_page
from app.serve.settled import settle


def main() -> None:
    st.set_page_config(page_title="Chipledger", page_icon=ICON, layout="wide")
    st.logo(LOGO, size="large")
    every = every_page()
    drawn = [
        st.Page(
            page.file,
            title=page.title,
            icon=page.icon,
            help=page.asks,
            url_path=page.path,
            default=number == 0,
            visibility="visible" if page.in_menu else "hidden",
        )
        for number, page in enumerate(every)
    ]
    sections: dict[str, list[st.Page]] = {head: [] for head in SECTIONS}
    for page, entry in zip(every, drawn, strict=True):
        sections[section_of(page.name) if page.in_menu else ""].append(entry)
    opened = st.navigation(sections, position="top")
    here = every[drawn.index(opened)]
    keys(here)
    docs_link(here)
    you_link()
    if said := warning():
        st.warning(said, icon=":material/lock_open:")
    with whole_page(), noticed():
        opened.run()
    settle()


with acting_as(who()):  # for all of it, should the browser go away meanwhile
    main()
