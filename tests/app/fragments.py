"""What was sent of a page, and what a browser does with it where a part is drawn again before its first drawing was
sent: Streamlit then drops what waits of that part, and all that the page drew beside it must still find its place."""

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.testing.v1 import local_script_runner


@pytest.fixture
def sent(monkeypatch):
    """What was sent of the page drawn last."""
    found: list[ForwardMsg] = []
    read = local_script_runner.parse_tree_from_messages

    def watched(messages: list[ForwardMsg]):
        found[:] = messages
        return read(messages)

    monkeypatch.setattr(local_script_runner, "parse_tree_from_messages", watched)
    return found


def parts(sent: list[ForwardMsg]) -> list[str]:
    """The parts that are drawn apart."""
    return sorted({m.delta.fragment_id for m in sent} - {""})


def out_of_place(sent: list[ForwardMsg], part: str) -> list[list[int]]:
    """Where a browser would have to put something behind nothing, once what waits of a part was dropped."""
    queue = ForwardMsgQueue()
    for message in sent:
        queue.enqueue(message)
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=[part])
    held: dict[tuple[int, ...], int] = {(): 4}  # how much stands in each block
    wrong = []
    for message in queue.flush():
        if message.WhichOneof("type") == "delta":
            path = tuple(message.metadata.delta_path)
            lacks = any(path[i] >= held.get(path[:i], 0) for i in range(len(path) - 1))
            if lacks or path[-1] > held.get(path[:-1], 0):
                wrong.append(list(path))
            held[path[:-1]] = max(held.get(path[:-1], 0), path[-1] + 1)
    return wrong


def all_out_of_place(sent: list[ForwardMsg]) -> list[list[int]]:
    """The same of every part."""
    return [wrong for part in parts(sent) for wrong in out_of_place(sent, part)]
