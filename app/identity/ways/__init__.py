"""How whoever asks can be known, in the order in which a request is asked. What is `open` is known by none of them."""

from app.identity.ways.oidc import OIDC
from app.identity.ways.proxy import PROXY
from app.identity.ways.token import TOKEN

WAYS = (TOKEN, PROXY, OIDC)
