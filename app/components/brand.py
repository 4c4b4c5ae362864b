"""The mark: a small icicle. Its colours read on light and dark."""

_BARS = (
    (0, 4, 30, "#0B7A75"),
    (0, 12.5, 19, "#3E938B"),
    (20.5, 12.5, 9.5, "#B22222"),
    (0, 21, 11, "#7FB7A8"),
    (12.5, 21, 6.5, "#E69F00"),
)
_FONT = 'font-family="Source Sans, Helvetica, Arial, sans-serif" font-size="22" font-weight="600" textLength="118" '
_FONT += 'lengthAdjust="spacingAndGlyphs"'

LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="184" height="32" viewBox="0 0 184 32">'
    + "".join(f'<rect x="{x}" y="{y}" width="{w}" height="7" rx="1" fill="{c}"/>' for x, y, w, c in _BARS)
    + f'<text x="40" y="23.5" {_FONT} fill="#1F9A93">Chipledger</text></svg>'
)
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="32" height="32" viewBox="-1 0 32 32">'
    + "".join(f'<rect x="{x}" y="{y}" width="{w}" height="7" rx="1" fill="{c}"/>' for x, y, w, c in _BARS)
    + "</svg>"
)
