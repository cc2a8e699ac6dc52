import json
import logging
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.observe.metrics import Image, Table, Video, media_as_json, media_from_json

PARTS = st.text("ab .é", min_size=1, max_size=5).filter(lambda part: set(part) != {"."})
PATHS = st.lists(PARTS, min_size=1, max_size=3).map(lambda parts: Path("/folder", *parts))
MEDIA = st.one_of(
    st.builds(
        Video,
        PATHS,
        st.none() | st.floats(1, 100) | st.integers(1, 100),
        st.text(max_size=5),
    ),
    st.builds(Image, PATHS, st.text(max_size=5)),
    st.builds(Table, PATHS),
)


@settings(max_examples=30)
@given(st.dictionaries(st.text(min_size=1, max_size=5), MEDIA, max_size=3))
def test_media_come_back_from_json(media) -> None:
    described = json.loads(json.dumps(media_as_json(media, Path("/folder"))))
    assert media_from_json(described, Path("/folder"), "m:1") == media


@pytest.mark.parametrize(
    ("described", "message"),
    [
        (3, "valid dictionary or object.*got 3"),
        ({"kind": "image"}, "image.path: Field required"),
        ({"kind": "image", "path": 3}, "image.path: .*path.*got 3"),
        ({"kind": "vidio", "path": "a"}, "'vidio'.*'video', 'image', 'table'"),
        ({"path": "a"}, "Unable to extract tag using discriminator 'kind'"),
        ({"kind": "image", "path": "/etc/passwd"}, "expected a path within .*'/etc/passwd'"),
        ({"kind": "image", "path": "a/../../b"}, "expected a path within .*'a/../../b'"),
        ({"kind": "image", "path": "link/b"}, "expected a path within .*'link/b'"),
        ({"kind": "image", "path": "circle"}, "circle"),
        ({"kind": "image", "path": "a\0"}, "null"),
        ({"kind": "image", "path": "a", "caption": 1}, "image.caption: .*string, got 1"),
        ({"kind": "video", "path": "a", "fps": "x"}, "video.fps: .*number.*got 'x'"),
    ],
)
def test_media_of_a_line_that_cannot_be_used_are_left_out(
    tmp_path, caplog, described, message
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    (folder / "circle").symlink_to(folder / "circle")
    data = {"bad": described, "good": {"kind": "image", "path": "b.png", "later": 1}}
    with caplog.at_level(logging.WARNING):
        assert media_from_json(data, folder, "m:7") == {"good": Image(folder / "b.png")}
    (said,) = caplog.messages
    assert said.startswith("m:7: media 'bad' is left out: ")
    assert re.search(message, said)
