"""What is said over HTTP names no folder of this machine."""

from pathlib import Path

import pytest

from app.serve.places import placeless

ROOT = Path("/srv/a store/chips")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("/srv/a store/chips: no run 'x' in this store", "the store: no run 'x' in this store"),
        ("/srv/a store/chips/runs/b0/run.json: no JSON", "runs/b0/run.json: no JSON"),
        ("cannot be opened (/usr/lib/x.so: no such file)", "cannot be opened (x.so: no such file)"),
        ("[Errno 2] No such file: '/etc/a/b.txt'", "[Errno 2] No such file: 'b.txt'"),
        ("nothing answers GET '/api/nothing'", "nothing answers GET '/api/nothing'"),
        ("PUT at least one to /upload/UPLOAD_ID/NAME.", "PUT at least one to /upload/UPLOAD_ID/NAME."),
        ("http://127.0.0.1:8000/usr/metrics does not answer", "http://127.0.0.1:8000/usr/metrics does not answer"),
        ("8 requests/s, TFLOP/s/device", "8 requests/s, TFLOP/s/device"),
        (None, None),
        (3.5, 3.5),
        ({"error": ["/usr/bin/x"], "n": 1}, {"error": ["x"], "n": 1}),
    ],
)
def test_names_of_folders_go(told, said):
    assert placeless(told, ROOT) == said
