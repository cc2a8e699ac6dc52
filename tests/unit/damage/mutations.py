"""Ways in which a file comes to be damaged."""

import json
import random

import yaml

VALUES = (
    *(None, True, 0, -1, 3, 2**31, 2**63, 2**200, 1.5, -0.0, 1e308, float("nan"), float("inf")),
    *("", "x", "é", "\ud800", "../..", "9" * 5000, [], {}, [[]], [None], {"a": {"b": 1}}),
)


def truncate(path, rng):
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(len(data) + 1)])


def flip(path, rng):
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 2, 8)) if data else 0):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def overwrite(path, rng):
    """Random bytes somewhere within, as of a bad sector."""
    data = bytearray(path.read_bytes())
    begin = rng.randrange(len(data) + 1)
    noise = rng.randbytes(rng.choice((1, 16, 512)))
    data[begin : begin + len(noise)] = noise
    path.write_bytes(data)


def zeros(path, rng):
    """As a machine leaves it that loses power: the length is right."""
    data = path.read_bytes()
    begin = rng.randrange(len(data) + 1)
    path.write_bytes(data[:begin] + bytes(len(data) - begin))


def noise(path, rng):
    path.write_bytes(rng.randbytes(rng.choice((1, 100, 5000))))


def empty(path, _):
    path.write_bytes(b"")


def delete(path, _):
    path.unlink()


def folder(path, rng):
    path.unlink()
    path.mkdir()
    if rng.random() < 0.5:
        (path / "x").write_text("x")


def dangling(path, _):
    path.unlink()
    path.symlink_to("nowhere")


def looping(path, _):
    path.unlink()
    path.symlink_to(path.name)


def nested(path, rng):
    path.write_bytes(rng.choice((b"[", b'{"a":', b"- ", b"a: {")) * 20_000)


def not_utf8(path, rng):
    data = path.read_bytes()
    at = rng.randrange(len(data) + 1)
    path.write_bytes(data[:at] + b"\xff\xfe\xc3" + data[at:])


def value(path, rng):
    """Another value, of another type at times, somewhere in JSON, lines of JSON or YAML."""
    text = path.read_bytes()
    if path.suffix == ".jsonl":
        lines = text.splitlines(keepends=True)
        if lines:
            at = rng.randrange(len(lines))
            lines[at] = json.dumps(changed(json.loads(lines[at]), rng)).encode() + b"\n"
        path.write_bytes(b"".join(lines))
    elif path.suffix == ".json":
        path.write_text(json.dumps(changed(json.loads(text), rng), indent=1))
    elif path.suffix == ".yaml":
        shown = yaml.safe_dump(changed(yaml.safe_load(text), rng), allow_unicode=False)
        path.write_bytes(shown.encode(errors="replace"))
    else:
        flip(path, rng)


def changed(data, rng):
    """The data with one of its values changed, or one of its keys gone or new."""
    places = [((), data)]
    for path, inner in places:  # grows on the way
        items = inner.items() if isinstance(inner, dict) else ()
        items = enumerate(inner) if isinstance(inner, list) else items
        places += [((*path, key), each) for key, each in items]
    path, _ = rng.choice(places)
    if not path:
        return rng.choice(VALUES)
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    how = rng.random()
    if how < 0.2:
        del inner[path[-1]]
    elif how < 0.3 and isinstance(inner, dict):
        inner[rng.choice(("new", "", "é"))] = rng.choice(VALUES)
    elif how < 0.4 and isinstance(inner, list):
        inner.append(inner[path[-1]])
    else:
        inner[path[-1]] = rng.choice(VALUES)
    return data


def lines(path, rng):
    """A line twice, gone, or moved."""
    found = path.read_bytes().splitlines(keepends=True)
    if found:
        at = rng.randrange(len(found))
        line = found.pop(at)
        if rng.random() < 0.7:
            found.insert(rng.randrange(len(found) + 1), line)
        if rng.random() < 0.5:
            found.insert(at, line)
    path.write_bytes(b"".join(found))


MUTATIONS = {
    each.__name__: each
    for each in (
        *(truncate, flip, overwrite, zeros, noise, empty, delete, folder, dangling, looping),
        *(nested, not_utf8, value, value, lines),
    )
}


def damage(path, name, seed):
    """Damages a file in one of the ways."""
    MUTATIONS[name](path, random.Random(seed))
