"""The commands of ``gamut dataset`` for formats of other tools, and the one that verifies."""

from __future__ import annotations

import argparse
from typing import Any

from rollout.api import Exporter, Importer
from rollout.commands.dataset_arguments import add_dataset, add_filter, add_out
from rollout.configuration.document import parse_set
from rollout.configuration.plugins import build_plugin, options_of
from rollout.data import Dataset, merging, pushing
from rollout.data.formats import import_dataset
from rollout.errors import DatasetError, InputError
from rollout.files import local_path
from rollout.registry import Group, load_plugin, names
from rollout.signals import one_line
from rollout.signals import tell as tell_lines

SET_ASIDE = 3
"""Exit status if something was left out, or differs."""

_MOST_SHOWN = 20  # flaws; all are in the file


def export(args: argparse.Namespace) -> int:
    with Dataset(args.dir) as dataset:
        exporter: Exporter = build_plugin("exporters", args.to, dict(args.set))
        count = exporter.write(
            dataset, dataset.episodes(include_lost=True, filter=args.filter), args.out
        )
    _tell(f"{args.out}: {count} written by the exporter {args.to}")
    return 0


def import_(args: argparse.Namespace) -> int:
    importer: Importer = build_plugin("importers", args.form, dict(args.set))
    done = import_dataset(importer, args.source, args.dir, form=args.form)
    for flaw in done.flaws[:_MOST_SHOWN]:
        _tell(f"left out: {flaw}")
    if len(done.flaws) > _MOST_SHOWN:
        _tell(f"and {len(done.flaws) - _MOST_SHOWN} more")
    _tell(f"{args.dir}: {done.episodes} episodes, {done.steps} steps")
    if not done.flaws:
        return 0
    _tell(f"{len(done.flaws)} left out; all are in {args.dir / 'quarantine' / 'import.jsonl'}")
    return SET_ASIDE


def verify(args: argparse.Namespace) -> int:
    from rollout.commands import dataset_verify  # noqa: PLC0415 - loads what hosts games

    with Dataset(args.dir) as dataset:
        refs = [ref for ref in dataset.episodes() if args.episode in (None, ref.episode)]
        if not refs:
            raise DatasetError(f"there is no such episode with a result in {dataset.layout.root}")
        names, lossy = dataset_verify.compared(dataset)
        _tell(f"comparing {', '.join(names)}")
        if lossy:
            _tell(f"not comparing {', '.join(lossy)}: stored with loss")
        found = [each for each in dataset_verify.verify(dataset, refs) if each is not None]
    for each in found:
        _tell(str(each))
    _tell(f"{len(refs) - len(found)} of {len(refs)} episodes are the same when played again")
    return SET_ASIDE if found else 0


def merge(args: argparse.Namespace) -> int:
    count = merging.merge([args.dir, *args.others], args.out)
    _tell(f"{args.out}: {count} shards of {1 + len(args.others)} datasets")
    return 0


def push(args: argparse.Namespace) -> int:
    count = pushing.push(args.dir, args.address)
    _tell(f"{args.address}: {count} files")
    return 0


def add_commands(commands: Any) -> None:
    """Adds the commands of this module to those of a parser."""
    text = "copy a dataset, or the folder of an export, to a folder or an address of fsspec"
    command = commands.add_parser("push", help=text, description=text)
    command.set_defaults(function=push)
    command.add_argument("dir", type=local_path, help="the dataset, or an exported folder")
    command.add_argument("address", help="a new folder, or e.g. s3://bucket/name")
    text = "put datasets of one task together by links to their files, without copying steps"
    command = commands.add_parser("merge", help=text, description=text)
    command.set_defaults(function=merge)
    command.add_argument("dir", type=local_path, help="the first dataset")
    command.add_argument("others", type=local_path, nargs="+", help="the others")
    add_out(command)
    text = "play the recorded actions again and compare every frame; exit status 3 if one differs"
    command = commands.add_parser("verify", help=text, description=text)
    command.set_defaults(function=verify)
    add_dataset(command)
    command.add_argument("episode", type=int, nargs="?", help="its number; by default all")
    text = "write all episodes that have a result in another format"
    command = _command(commands, "export", text, "exporters")
    command.set_defaults(function=export)
    add_dataset(command)
    command.add_argument("--to", required=True, choices=names("exporters"), help="the format")
    add_filter(command)
    command.add_argument("out", type=local_path, help="the file or folder to write")
    _add_set(command)
    text = "make a dataset of episodes in another format; exit status 3 if some are left out"
    command = _command(commands, "import", text, "importers")
    command.set_defaults(function=import_)
    forms = names("importers")
    command.add_argument("--from", dest="form", required=True, choices=forms, help="the format")
    command.add_argument("source", type=local_path, help="the file or folder to read")
    command.add_argument("dir", type=local_path, help="the new dataset; nothing is overwritten")
    _add_set(command)


def _command(commands: Any, name: str, text: str, group: Group) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=text,
        add_help=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    said = "show this text"
    command.add_argument("-h", "--help", action=_Help, nargs=0, const=group, help=said)
    return command


class _Help(argparse.Action):
    """Shows the help with the formats and their options, which are loaded for it only."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.epilog = "\n".join(_formats(self.const))
        parser.print_help()
        parser.exit()


def _add_set(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--set",
        type=_option,
        action="extend",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="options of the format",
    )


def _option(text: str) -> tuple[str, Any]:
    try:
        return parse_set(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _formats(group: Group) -> list[str]:
    lines = ["formats and their options:"]
    for name in names(group):
        doc = (load_plugin(group, name).__doc__ or "").strip().partition("\n")[0]
        lines.append(f"  {name}: {doc.partition(': ')[2] or doc}")
        for each in options_of(group, name).model_fields.values():
            default = (
                "" if each.is_required() else f" [{each.get_default(call_default_factory=True)}]"
            )
            lines.append(f"    {each.alias}: {each.description}{default}")
    return lines


def _tell(line: str) -> None:
    tell_lines(one_line(line))
