"""What is known of whoever asks: a name, a role, and the groups they are in."""

import enum
from dataclasses import dataclass


class Role(enum.IntEnum):
    """Each may what the one before may. `ADMIN` alone deletes for good, hands out tokens and reads the audit log."""

    NOBODY = 0
    VIEWER = 1
    UPLOADER = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        """As it is written in settings, on pages and in JSON."""
        return self.name.lower()


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Whoever asks. `how`: by what the guard knows them: `open` (no identity is set up), `oidc`, `proxy`, `token`,
    `server` for what the server and the command line do of themselves, or `nobody` where identity is set up and nothing
    says who asks. `token_id` names the token, where it was one."""

    name: str
    role: Role
    groups: frozenset[str] = frozenset()
    how: str = "open"
    token_id: str = ""

    @property
    def sees_all(self) -> bool:
        """Whether runs of every group are theirs to see."""
        return self.role is Role.ADMIN or self.how in ("open", "server")


SERVER = Identity(name="", role=Role.ADMIN, how="server")
OPEN = Identity(name="", role=Role.ADMIN, how="open")
NOBODY = Identity(name="", role=Role.NOBODY, how="nobody")
