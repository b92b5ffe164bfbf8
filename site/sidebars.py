"""The sidebars of pages that no table of contents lists: the reference's and the exercises'."""

import html
from collections.abc import Callable
from typing import Any, NamedTuple

import course
import generate


class Item(NamedTuple):
    """A line of a sidebar: its text, where it leads, whether it is open, and what is below it."""

    title: str
    address: str
    is_current: bool = False
    items: tuple["Item", ...] = ()


class Sidebar(NamedTuple):
    """What a page's sidebar has: the way back, its part, and the others with their title."""

    back: Item
    title: str
    items: tuple[Item, ...]
    others_title: str
    others: tuple[Item, ...]


Address = Callable[[str], str]  # of a page, seen from the page that has the sidebar


def of_module(module: str, address: Address) -> Sidebar:
    """Return the sidebar of a module: the modules of its section, and the other sections."""
    modules = generate.modules()
    section = generate.section_of(module)
    items = []
    for name, names in modules.items():
        if generate.section_of(name) != section:
            continue
        below = tuple(Item(each, f"#{name}.{each}") for each in names) if name == module else ()
        short = name.removeprefix(f"bbb_numpy.{section}.").removeprefix(f"{section}.")
        items.append(Item(short, address(f"api/{name}"), name == module, below))
    overview = address("api/index")
    others = [
        Item(other, f"{overview}#{other.replace('_', '-')}")
        for other in dict.fromkeys(map(generate.section_of, modules))
        if other != section
    ]
    return Sidebar(Item("Reference", overview), section, tuple(items), "Other parts", tuple(others))


def of_exercise(page: course.ExercisePage, address: Address) -> Sidebar:
    """Return the sidebar of an exercise: those of its chapter, and the other chapters."""
    listed = course.exercise_pages().values()
    title = next(each for each in listed if each.chapter == page.chapter)
    items = []
    for each in listed:
        if each.chapter == page.chapter and each.file:
            label = each.file.stem.replace("_", " ")
            items.append(Item(label, address(each.docname), each == page))
    others = [
        Item(each.title, address(each.docname))
        for each in listed
        if each.chapter and not each.file and each.chapter != page.chapter
    ]
    back = Item("Exercises", address(course.README.removesuffix(".md")))
    own = Item(title.title, address(title.docname), page == title, tuple(items))
    return Sidebar(back, "", (own,), "Other chapters", tuple(others))


def add_sidebar(app: Any, name: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Give a page of the reference or of the exercises its sidebar, and the pages beside it."""

    def address(other: str) -> str:
        return str(app.builder.get_relative_uri(name, other))

    before = after = None
    if name.startswith("api/") and name != "api/index":
        module = name.removeprefix("api/")
        described = [each for each in generate.modules() if generate.has_page(each)]
        at = described.index(module)
        before = f"api/{described[at - 1]}" if at else "api/index"
        after = f"api/{described[at + 1]}" if at + 1 < len(described) else None
        context["part"] = of_module(module, address)
    page = course.exercise_pages().get(f"{name}.md")
    if page and page.chapter:
        beside = course.neighbours(page.path)
        before, after = (each.docname if each else None for each in beside)
        context["part"] = of_exercise(page, address)
    for key, other in (("prev", before), ("next", after)):
        if other:
            title = html.escape(app.env.titles[other].astext())
            context[key] = {"link": address(other), "title": title}
