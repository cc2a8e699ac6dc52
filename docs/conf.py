"""Sphinx configuration of the documentation; ``make docs`` builds it into ``build/docs``."""

import dataclasses
import importlib.metadata
import re

from pygments.lexers.special import TextLexer

project = "Gamut"
release = importlib.metadata.version("gamut")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"Gamut {release}"
html_copy_source = False
html_show_sphinx = html_show_copyright = False
highlight_language = "none"  # of blocks that name none

myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_typehints_format = "short"
autodoc_type_aliases = {name: name for name in ("Array", "Columns", "Details")}
python_maximum_signature_line_length = 80
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

# A link from a page to a file of the repository that is not a page.
_LINK = re.compile(r"\[([^\]]*)\]\(\.\./([^)\s]+)\)")


def _name_file(link):
    text, path = link[1].strip("`"), link[2]
    return f"`{path}`" if text == path else f"{link[1]} (`{path}`)"


def _name_files(app, docname, source):
    """The site has no copies of such files: it shows the path instead of a link."""
    source[0] = _LINK.sub(_name_file, source[0])


def _skip_tuple_fields(app, what, name, field, skip, options):
    """The docstring of a named tuple describes its fields; Python's own says their numbers."""
    return True if type(field).__name__ == "_tuplegetter" else None


def _describe_options(app, what, name, described, options, lines):
    """The documentation of an option stands beside it, see ``rollout.api.option``."""
    if what == "class" and dataclasses.is_dataclass(described):
        docs = {each.name: each.metadata.get("doc") for each in dataclasses.fields(described)}
        lines += ["", *(f":param {field}: {doc}" for field, doc in docs.items() if doc), ""]


def _tidy(app, what, name, described, options, signature, returns):
    """Shortens what Python prints for defaults made by a factory and for aliases of types."""
    tidied = [
        text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text.replace("<factory>", "..."))
        for text in (signature, returns)
    ]
    return tuple(tidied)


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _describe_options)
    app.connect("autodoc-process-signature", _tidy)
    app.connect("source-read", _name_files)
    app.connect("autodoc-skip-member", _skip_tuple_fields)
    app.add_lexer("mermaid", TextLexer)  # GitHub draws such diagrams; the site shows their text
