"""Identity as this server was started with it: read once, before anything answers."""

import os
from pathlib import Path

from app.identity.asking import told_by_pages
from app.identity.door import Door
from app.identity.header import identity_of_script
from app.identity.may import noted_by
from app.identity.settings import OPEN_VARIABLE, VARIABLE, read
from app.pages.all import every_page, older_addresses
from app.workspace import Workspace


def door_of_this_server(place: Workspace) -> Door | None:
    """What the guard asks; None where no identity is set up. Raises InputError for settings that cannot be."""
    if not (file := os.environ.get(VARIABLE)):
        return None
    os.environ.pop(OPEN_VARIABLE, None)
    # what a proxy says of where somebody is, is believed of the settings' proxy alone, and by us: uvicorn would put it
    # in the place of the connection's own address, of whichever program of this machine asks
    os.environ["FORWARDED_ALLOW_IPS"] = ""
    pages = {f"/{page.path}" for page in every_page()} | {f"/{old}" for old in older_addresses()}
    door = Door(read(Path(file)), place, pages)
    told_by_pages(identity_of_script)
    noted_by(door.noting.note)
    return door
